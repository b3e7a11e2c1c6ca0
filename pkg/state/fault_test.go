package state

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// flaky fails operations on tables at random while it is on. (A manifest that cannot be written ends the process, as
// TestFatal and the tests of an instance show.)
type flaky struct {
	mu    sync.Mutex
	rng   *rand.Rand
	on    bool
	fails int
}

func (f *flaky) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on || !strings.HasSuffix(op.Path, ".sst") || f.rng.IntN(6) > 0 {
		return nil
	}
	f.fails++
	errno := []error{syscall.EIO, syscall.ENOSPC}[f.rng.IntN(2)]
	return &os.PathError{Op: "random", Path: op.Path, Err: errno}
}

func (f *flaky) String() string { return "flaky" }

func (f *flaky) turn(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = on
}

func (f *flaky) failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fails
}

// TestRandomDiskErrors: whatever fails and whenever it crashes, what is found afterwards is what one of the commits
// left, never older than a flush that was said to have succeeded, and never set aside.
func TestRandomDiskErrors(t *testing.T) {
	steps := 120
	if testing.Short() {
		steps = 30
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			faults := &flaky{rng: rand.New(rand.NewPCG(seed, 8))}
			mem := vfs.NewCrashableMem()
			var e *Engine
			start := func() {
				e = testEngine(t, Config{FS: errorfs.Wrap(mem, faults), MemtableBytes: 1, RowCacheBytes: 1, Events: Events{
					SetAside: func(_, path, reason string) { t.Errorf("state was set aside: %s", reason) },
				}})
			}
			start()
			db := testOpen(t, e, "0_0")
			history := []map[string]string{{}} // by position: each commit moves it by one
			durable := int64(0)
			failed := 0
			for range steps {
				faults.turn(true)
				s, now := db.Store("s"), maps.Clone(history[db.Checkpoint()[0]])
				for range 1 + rng.IntN(60) {
					k := fmt.Sprintf("key-%03d", rng.IntN(200))
					if rng.IntN(4) == 0 {
						s.Delete([]byte(k))
						delete(now, k)
					} else {
						now[k] = fmt.Sprint(rng.Uint64())
						s.Put([]byte(k), []byte(now[k]))
					}
				}
				at := db.Checkpoint()[0]
				err := db.Apply(db.Freeze(), []int64{at + 1})
				if err == nil {
					history = append(history[:at+1], now)
					if rng.IntN(3) == 0 {
						if err = db.Flush(); err == nil {
							durable = at + 1
						}
					}
				}
				crash := rng.IntN(20) == 0
				if err == nil && !crash && rng.IntN(10) > 0 {
					continue
				}
				if err != nil {
					failed++
				}
				var clone *vfs.MemFS
				if crash {
					clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 9))})
				}
				if err := db.Close(); err == nil && db.Err() == nil && !crash {
					durable = db.Checkpoint()[0]
				}
				if crash {
					faults.turn(false)
					mustClose(t, e)
					mem = clone
					start()
				}
				if try, err := e.Open("0_0", db.specs); err == nil { // while errors go on
					_ = try.Close()
				}
				faults.turn(false)
				db = testOpen(t, e, "0_0")
				found := db.Checkpoint()[0]
				if found < durable || found >= int64(len(history)) {
					t.Fatalf("the state is that of commit %d: there were %d, and %d was flushed", found, len(history)-1, durable)
				}
				got := map[string]string{}
				it := db.Store("s").Range(nil, nil)
				for it.Next() {
					got[string(it.Key())] = string(it.Value())
				}
				if err := it.Err(); err != nil {
					t.Fatal(err)
				}
				mustClose(t, it)
				if !maps.Equal(got, history[found]) {
					t.Fatalf("at commit %d there are %d rows, want %d", found, len(got), len(history[found]))
				}
			}
			if failed == 0 || faults.failed() == 0 {
				t.Errorf("%d of %d operations that failed were noticed", failed, faults.failed())
			}
		})
	}
}
