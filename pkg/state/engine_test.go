package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func mustClose(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, db *DB, n int) {
	t.Helper()
	for i := range n {
		db.Store("s").Put(fmt.Appendf(nil, "key-%06d", i), fmt.Appendf(nil, "value-%d", i))
	}
	applyAll(t, db)
}

func wantRows(t testing.TB, db *DB, want int) {
	t.Helper()
	it := db.Store("s").Range(nil, nil)
	n := 0
	for it.Next() {
		n++
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil || n != want {
		t.Fatalf("%d rows, want %d (%v)", n, want, err)
	}
}

// TestDirInUse starts this test again as another process that wants the same directory.
func TestDirInUse(t *testing.T) {
	const other = "STATE_TEST_DIR"
	if dir := os.Getenv(other); dir != "" {
		_, err := NewEngine(Config{Dir: dir, Logger: quiet(), BallastBytes: -1})
		fmt.Println(err, errors.Is(err, ErrDirInUse))
		fmt.Println(Holder(dir))
		return
	}
	dir := t.TempDir()
	e := testEngine(t, Config{Dir: dir, FS: vfs.Default})
	cmd := exec.Command(os.Args[0], "-test.run=^TestDirInUse$")
	cmd.Env = append(os.Environ(), other+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	for _, want := range []string{"state: directory in use", dir, fmt.Sprint("process ", os.Getpid(), " on"), "true", fmt.Sprint("process ", os.Getpid(), " <nil>")} {
		if !strings.Contains(string(out), want) {
			t.Errorf("another process reads %q, want it to contain %q", out, want)
		}
	}
	if _, err := NewEngine(Config{Dir: dir, Logger: quiet(), BallastBytes: -1}); !errors.Is(err, ErrDirInUse) {
		t.Errorf("the same process got %v, want ErrDirInUse", err)
	}
	mustClose(t, e)
	if who, err := Holder(dir); who != "" || err != nil {
		t.Errorf("nobody has it: %q, %v", who, err)
	}
	mustClose(t, testEngine(t, Config{Dir: dir, FS: vfs.Default}))
}

// TestSetAside damages or replaces a task's database in several ways and opens it.
func TestSetAside(t *testing.T) {
	glob := func(t *testing.T, dir, pattern string) []string {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		return files
	}
	each := func(pattern string, f func(name string) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range glob(t, dir, pattern) {
				if err := f(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	garbage := func(name string) error { return os.WriteFile(name, []byte("no such thing"), 0o600) }
	withPebble := func(f func(p *pebble.DB) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			p, err := pebble.Open(dir, &pebble.Options{Logger: pebbleLogger{log: quiet()}})
			if err == nil {
				err = errors.Join(f(p), p.Flush(), p.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	foreign := func(p *pebble.DB) error { return p.Set([]byte("users/1"), []byte("x"), nil) }
	for name, damage := range map[string]func(t *testing.T, dir string){
		"manifest of garbage": each("MANIFEST*", garbage),
		"table lost":          each("*.sst", os.Remove),
		"table cut off":       each("*.sst", func(name string) error { return os.Truncate(name, 10) }),
		"marker lost":         each("marker.manifest*", os.Remove),
		"checkpoint unreadable": withPebble(func(p *pebble.DB) error {
			return p.Set(checkpointKey("s"), []byte("?"), nil)
		}),
		"another task's": withPebble(func(p *pebble.DB) error { return p.Set(formatKey, []byte(formatTag+"0_9"), nil) }),
		"another version": withPebble(func(p *pebble.DB) error {
			return p.Set(formatKey, []byte("streamworker state 2: task 0_0"), nil)
		}),
		"another program's": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			withPebble(foreign)(t, dir)
		},
		"a file": func(t *testing.T, dir string) {
			if err := errors.Join(os.RemoveAll(dir), garbage(dir)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			var events []string
			cfg := Config{Dir: root, FS: vfs.Default, Events: Events{SetAside: func(task, path, reason string) {
				events = append(events, task, path, reason)
			}}}
			e := testEngine(t, cfg)
			db := testOpen(t, e, "0_0")
			put(t, db, 1000)
			mustClose(t, e)
			damage(t, filepath.Join(root, tasksDir, "0_0"))

			e = testEngine(t, cfg)
			db = testOpen(t, e, "0_0")
			if p := db.Checkpoint()[0]; p != 0 {
				t.Fatalf("it starts at %d, want 0", p)
			}
			wantRows(t, db, 0)
			put(t, db, 10)
			wantRows(t, db, 10)
			if len(events) != 3 || events[0] != "0_0" || events[2] == "" {
				t.Fatalf("events %q", events)
			}
			if _, err := os.Stat(events[1]); err != nil {
				t.Error("nothing is where the state was said to be set aside:", err)
			}
		})
	}
}

// TestNotSetAside: errors of the surroundings say nothing about the state.
func TestNotSetAside(t *testing.T) {
	for _, errno := range []error{syscall.EACCES, syscall.EMFILE, syscall.ENOSPC, syscall.EIO} {
		t.Run(errno.Error(), func(t *testing.T) {
			mem := vfs.NewMem()
			var broken atomic.Bool
			disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && strings.Contains(op.Path, "MANIFEST") {
					return &os.PathError{Op: "open", Path: op.Path, Err: errno}
				}
				return nil
			}))
			cfg := Config{FS: disk, Events: Events{SetAside: func(string, string, string) { t.Error("the state was set aside") }}}
			e := testEngine(t, cfg)
			put(t, testOpen(t, e, "0_0"), 10)
			mustClose(t, e)
			e = testEngine(t, cfg)
			broken.Store(true)
			if _, err := e.Open("0_0", []StoreSpec{{Name: "s", TopicID: [16]byte{7}}}); !errors.Is(err, errno) {
				t.Fatalf("got %v, want %v", err, errno)
			}
			broken.Store(false)
			wantRows(t, testOpen(t, e, "0_0"), 10)
		})
	}
}

// TestStale: what the checkpoint says decides whether the state may be used.
func TestStale(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := StoreSpec{Name: "s", TopicID: [16]byte{7}, Retention: 10 * time.Hour}
	for name, test := range map[string]struct {
		later time.Duration
		spec  StoreSpec
		want  int
	}{
		"young":               {8 * time.Hour, spec, 10},
		"within the margin":   {9*time.Hour + time.Minute, spec, 0},
		"too old":             {11 * time.Hour, spec, 0},
		"old, no limit":       {1000 * time.Hour, StoreSpec{Name: "s", TopicID: spec.TopicID}, 10},
		"the clock went back": {-2 * time.Hour, spec, 0},
		"another topic":       {0, StoreSpec{Name: "s", TopicID: [16]byte{8}}, 0},
		"store renamed":       {0, StoreSpec{Name: "t", TopicID: spec.TopicID}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now, rebuilt := start, 0
			cfg := Config{FS: vfs.NewMem(), Now: func() time.Time { return now }, Events: Events{Rebuilt: func(string, string, string) { rebuilt++ }}}
			e := testEngine(t, cfg)
			db, err := e.Open("0_0", []StoreSpec{spec})
			if err != nil {
				t.Fatal(err)
			}
			put(t, db, 10)
			mustClose(t, e)
			now = now.Add(test.later)
			e = testEngine(t, cfg)
			if db, err = e.Open("0_0", []StoreSpec{test.spec}); err != nil {
				t.Fatal(err)
			}
			s := db.Store(test.spec.Name)
			_, found, err := s.Get([]byte("key-000001"))
			if err != nil || found != (test.want > 0) || db.Checkpoint()[0] != int64(test.want) {
				t.Errorf("found %v at %d, want %d (%v)", found, db.Checkpoint()[0], test.want, err)
			}
			if wantEvent := test.want == 0 && test.spec.Name == "s"; wantEvent != (rebuilt == 1) {
				t.Errorf("%d stores were reported as rebuilt", rebuilt)
			}
		})
	}
}

// TestAge follows the time that is kept with the checkpoint.
func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	start := now
	cfg := Config{FS: vfs.NewMem(), Now: func() time.Time { return now }}
	e := testEngine(t, cfg)
	db := testOpen(t, e, "0_0")
	reopen := func(step string, want time.Duration) {
		t.Helper()
		mustClose(t, db)
		local := e.Local()
		if len(local) != 1 || local[0].Time.Sub(start) != want {
			t.Fatalf("%s: local state %+v, want it as of %v after the start", step, local, want)
		}
		db = testOpen(t, e, "0_0")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.ApplyChangelog(0, nil, 5, 100))
	now = now.Add(time.Hour)
	must(db.ApplyChangelog(0, nil, 50, 100))
	reopen("behind: as of the start of the replay", 0)
	must(db.ApplyChangelog(0, nil, 100, 100))
	reopen("at the end", time.Hour)
	now = now.Add(time.Hour)
	must(db.ApplyChangelog(0, nil, 100, 100))
	reopen("still at the end", 2*time.Hour)
	now = now.Add(time.Hour)
	must(db.ApplyChangelog(0, nil, 100, 101))
	reopen("behind again", 2*time.Hour)
	db.MarkCurrent()
	reopen("marked", 3*time.Hour)
	now = now.Add(time.Hour)
	must(db.Apply(nil, []int64{100}))
	reopen("an empty commit", 4*time.Hour)
}

// A store that was up to date and then was not read on for longer than tombstones last has to start anew. One that is read from the start may
// take as long as it needs.
func TestReplayAfterAPause(t *testing.T) {
	now := time.Now()
	e := testEngine(t, Config{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	db, err := e.Open("0_0", []StoreSpec{{Name: "s", TopicID: [16]byte{7}, Retention: 10 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []int64{5, 50} {
		must(db.ApplyChangelog(0, nil, at, 100))
		now = now.Add(20 * time.Hour)
	}
	must(db.ApplyChangelog(0, nil, 100, 100))
	now = now.Add(8 * time.Hour)
	must(db.ApplyChangelog(0, nil, 100, 100))
	now = now.Add(11 * time.Hour).Round(0) // as after a suspension, through which the monotonic clock stands still
	if err := db.ApplyChangelog(0, nil, 101, 101); !errors.Is(err, ErrStale) {
		t.Fatalf("%v, want ErrStale", err)
	}
	must(db.Reset("stale", 0))
	must(db.ApplyChangelog(0, nil, 101, 101))
	mustClose(t, db)
}

func TestLocal(t *testing.T) {
	disk := vfs.NewCrashableMem()
	e := testEngine(t, Config{FS: disk})
	closed, flushed, lost, removed := testOpen(t, e, "0_1"), testOpen(t, e, "0_2"), testOpen(t, e, "0_3"), testOpen(t, e, "0_4")
	put(t, closed, 10)
	put(t, flushed, 20)
	put(t, lost, 30)
	put(t, removed, 40)
	mustClose(t, closed)
	mustClose(t, removed)
	if err := flushed.Flush(); err != nil {
		t.Fatal(err)
	}
	put(t, flushed, 5) // not flushed
	if err := e.Remove("0_2"); !errors.Is(err, ErrOpen) {
		t.Errorf("removing open state: %v, want ErrOpen", err)
	}
	if err := e.Remove("0_4"); err != nil {
		t.Fatal(err)
	}
	want := func(e *Engine, want string) {
		t.Helper()
		var got []string
		for _, l := range e.Local() {
			got = append(got, fmt.Sprintf("%s:%d", l.Task, l.Position))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("local state %q, want %q", s, want)
		}
	}
	want(e, "0_1:10")
	after := testEngine(t, Config{FS: disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})})
	want(after, "0_1:10 0_2:20")
	wantRows(t, testOpen(t, after, "0_2"), 20)
	want(after, "0_1:10")
}

// TestStoresComeAndGo: a store that is added does not disturb the others, one that was left out is there
// again later.
func TestStoresComeAndGo(t *testing.T) {
	e := testEngine(t, Config{})
	a, b := StoreSpec{Name: "a", TopicID: [16]byte{1}}, StoreSpec{Name: "b", TopicID: [16]byte{2}}
	open := func(specs ...StoreSpec) *DB {
		db, err := e.Open("0_0", specs)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	get := func(db *DB, store, want string) {
		t.Helper()
		v, _, err := db.Store(store).Get([]byte("k"))
		if err != nil || string(v) != want {
			t.Errorf("store %s: %q (%v), want %q", store, v, err, want)
		}
	}
	db := open(a)
	db.Store("a").Put([]byte("k"), []byte("in a"))
	if err := db.Apply(db.Freeze(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	db = open(b, a)
	get(db, "b", "")
	get(db, "a", "in a")
	db.Store("b").Put([]byte("k"), []byte("in b"))
	if err := db.Apply(db.Freeze(), []int64{1, 1}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	mustClose(t, open(b))
	db = open(a, b)
	get(db, "a", "in a")
	get(db, "b", "in b")
}

func TestMisuse(t *testing.T) {
	e := testEngine(t, Config{})
	db := testOpen(t, e, "0_0")
	put(t, db, 10)
	s := db.Store("s")
	if _, err := e.Open("0_0", nil); !errors.Is(err, ErrOpen) {
		t.Errorf("opened twice: %v", err)
	}
	for _, name := range []string{"", "..", "a/b"} {
		if _, err := e.Open(name, nil); err == nil {
			t.Errorf("task name %q was taken", name)
		}
	}
	if err := db.Apply(nil, []int64{9}); err == nil {
		t.Error("positions may go back")
	}
	if err := db.Apply(nil, nil); err == nil {
		t.Error("positions may be missing")
	}
	s.Put([]byte("a"), nil)
	first := db.Freeze()
	s.Put([]byte("b"), nil)
	second := db.Freeze()
	if err := db.Apply(second, []int64{20}); err == nil {
		t.Error("changes may be applied out of order")
	}
	if err := db.ApplyChangelog(0, nil, 20, 20); err == nil {
		t.Error("a changelog may be applied over writes that are not")
	}
	if err := db.Apply(first, []int64{20}); err != nil {
		t.Error(err)
	}
	db.Discard()
	if err := db.Apply(second, []int64{21}); !errors.Is(err, ErrDiscarded) {
		t.Errorf("discarded changes: %v", err)
	}

	it := s.Range(nil, nil)
	if !it.Next() {
		t.Fatal(it.Err())
	}
	mustClose(t, db)
	if it.Next() || !errors.Is(it.Err(), ErrClosed) {
		t.Errorf("an iterator goes on after Close: %v", it.Err())
	}
	mustClose(t, it)
	if _, _, err := s.Get([]byte("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("get after close: %v", err)
	}
	late := s.Range(nil, nil)
	if late.Next() || !errors.Is(late.Err(), ErrClosed) {
		t.Errorf("range after close: %v", late.Err())
	}
	mustClose(t, late)
	s.Put([]byte("a"), nil)
	s.Delete([]byte("b"))
	if err := db.Apply(db.Freeze(), []int64{30}); !errors.Is(err, ErrClosed) {
		t.Errorf("apply after close: %v", err)
	}
	for name, call := range map[string]func() error{
		"flush": db.Flush, "close": db.Close, "reset": func() error { return db.Reset("test") },
		"changelog": func() error { return db.ApplyChangelog(0, nil, 40, 40) },
	} {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	mustClose(t, e)
	if _, err := e.Open("0_0", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("open after the engine's close: %v", err)
	}
}

// TestCloseAgainstUse closes databases under goroutines that read, write and iterate.
func TestCloseAgainstUse(t *testing.T) {
	e := testEngine(t, Config{RowCacheBytes: 1})
	for range 20 {
		db := testOpen(t, e, "0_0")
		put(t, db, 2000)
		var wg sync.WaitGroup
		wg.Go(func() { // the task
			s := db.Store("s")
			for i := 0; ; i++ {
				key := fmt.Appendf(nil, "key-%06d", i*7%3000)
				if _, _, err := s.Get(key); errors.Is(err, ErrClosed) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				s.Put(key, key)
				if c := db.Freeze(); c != nil {
					if err := db.Apply(c, []int64{db.Checkpoint()[0] + 1}); err != nil && !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			for !errors.Is(db.Flush(), ErrClosed) {
			}
		})
		time.Sleep(time.Millisecond)
		mustClose(t, db)
		wg.Wait()
	}
}

// TestDiskErrors: a write that fails in the background makes the task fail, not the process, and nothing
// waits for ever.
func TestDiskErrors(t *testing.T) {
	var broken atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))
	failed := make(chan string, 1)
	cfg := Config{FS: disk, Events: Events{Failed: func(task string, _ error) { failed <- task }}}
	e := testEngine(t, cfg)
	db, other := testOpen(t, e, "0_0"), testOpen(t, e, "0_1")
	put(t, db, 10)
	put(t, other, 10)
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	put(t, db, 20)
	broken.Store(true)
	if err := db.Flush(); !errors.Is(err, syscall.EIO) {
		t.Errorf("flush: %v", err)
	}
	if task := <-failed; task != "0_0" {
		t.Errorf("task %s is said to have failed", task)
	}
	if err := db.Apply(nil, []int64{1000}); !errors.Is(err, syscall.EIO) {
		t.Errorf("apply: %v", err)
	}
	mustClose(t, db)
	broken.Store(false)
	if err := other.Flush(); err != nil {
		t.Errorf("another task: %v", err)
	}
	wantRows(t, other, 10)
	mustClose(t, e)
	wantRows(t, testOpen(t, testEngine(t, cfg), "0_0"), 10) // of the first flush
}

// TestDamageWhileOpen: a table that is found damaged by a read fails the task; closing it sets the state
// aside.
func TestDamageWhileOpen(t *testing.T) {
	root := t.TempDir()
	aside := 0
	cfg := Config{Dir: root, FS: vfs.Default, BlockCacheBytes: 1, RowCacheBytes: 1, Events: Events{SetAside: func(string, string, string) { aside++ }}}
	e := testEngine(t, cfg)
	put(t, testOpen(t, e, "0_0"), 5000)
	mustClose(t, e)
	tables, err := filepath.Glob(filepath.Join(root, tasksDir, "0_0", "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	content, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := len(content) / 4; i < len(content)/2; i++ {
		content[i] ^= byte(1 + rand.Uint32N(255))
	}
	if err := os.WriteFile(tables[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	e = testEngine(t, cfg)
	db := testOpen(t, e, "0_0")
	for i := range 5000 {
		if _, _, err = db.Store("s").Get(fmt.Appendf(nil, "key-%06d", i)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrCorrupt) || !errors.Is(db.Err(), ErrCorrupt) {
		t.Fatalf("reading damaged tables: %v", err)
	}
	mustClose(t, db)
	if aside != 1 || len(e.Local()) != 0 {
		t.Errorf("set aside %d times, local %v", aside, e.Local())
	}
	db = testOpen(t, e, "0_0")
	wantRows(t, db, 0)
}

// TestDiskFull: the ballast is freed and the write goes on.
func TestDiskFull(t *testing.T) {
	mem := vfs.NewMem()
	var full atomic.Bool
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpRemove && strings.HasSuffix(op.Path, ballastFile) {
			full.Store(false)
		} else if full.Load() && op.Kind == errorfs.OpFileWrite {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	told := 0
	e := testEngine(t, Config{FS: disk, BallastBytes: 1 << 20, Events: Events{DiskFull: func() { told++ }}})
	if info, err := mem.Stat("state/ballast"); err != nil || info.Size() != 1<<20 {
		t.Fatal("no ballast of the size asked for:", err)
	}
	db := testOpen(t, e, "0_0")
	put(t, db, 10)
	full.Store(true)
	if err := db.Flush(); err != nil {
		t.Errorf("flush on a full disk with ballast: %v", err)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	if _, err := mem.Stat("state/ballast"); !os.IsNotExist(err) {
		t.Errorf("the ballast is still there: %v", err)
	}
}

// TestRunFlushes: by time, by size of one database and by size of all.
func TestRunFlushes(t *testing.T) {
	for name, cfg := range map[string]Config{
		"time":  {FlushInterval: time.Millisecond},
		"size":  {FlushBytes: 1},
		"total": {MemtableBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.FS = vfs.NewMem()
			e := testEngine(t, cfg)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { done <- e.Run(ctx) }()
			db := testOpen(t, e, "0_0")
			put(t, db, 10)
			for deadline := time.Now().Add(patience); db.unflushed() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("nothing was flushed")
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := e.unflushed.Load(); n != 0 {
				t.Errorf("the engine counts %d bytes to be flushed", n)
			}
		})
	}
}

// TestManyDatabases: many databases compact under one limit.
func TestManyDatabases(t *testing.T) {
	var engine atomic.Pointer[Engine]
	var most atomic.Int64
	// Whatever a compaction writes, it is counted as running then: looking at each operation sees every one.
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(errorfs.Op) error {
		if e := engine.Load(); e != nil {
			e.compactions.mu.Lock()
			defer e.compactions.mu.Unlock()
			most.Store(max(most.Load(), int64(e.compactions.running)))
		}
		return nil
	}))
	e := testEngine(t, Config{FS: disk, Compactions: 2, MemtableBytes: 1, RowCacheBytes: 1})
	engine.Store(e)
	var dbs []*DB
	for i := range 40 {
		dbs = append(dbs, testOpen(t, e, fmt.Sprintf("0_%d", i)))
	}
	for range 6 { // more level-0 tables than are left alone
		for _, db := range dbs {
			put(t, db, 50)
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	compacted := func() int {
		n := 0
		for _, db := range dbs {
			if db.pebble.Metrics().Compact.Count > 0 {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(patience); compacted() < len(dbs); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d databases were compacted", compacted(), len(dbs))
		}
	}
	if most.Load() == 0 || most.Load() > 2 {
		t.Errorf("%d compactions were seen at once, want 1 or 2", most.Load())
	}
	for _, db := range dbs {
		wantRows(t, db, 50)
	}
}

// TestFatal: where Pebble cannot go on, the event comes first and nothing is passed over if it returns.
func TestFatal(t *testing.T) {
	var told error
	l := pebbleLogger{task: "0_0", log: quiet(), fatal: func(_ string, err error) { told = err }}
	defer func() {
		if got := recover(); got == nil || told == nil || !strings.Contains(told.Error(), "0_0: MANIFEST flush failed: no space") {
			t.Errorf("told %v, panicked with %v", told, got)
		}
	}()
	l.Fatalf("MANIFEST flush failed: %s", "no space")
}
