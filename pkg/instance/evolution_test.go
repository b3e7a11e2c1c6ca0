package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology"
)

// storeFile is a file with another count step.
func storeFile(step string) string {
	return strings.Replace(countFile, "count: {store: counts}", step, 1)
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// ranUnder runs an instance until it has counted some records, and stops it.
func (b *bench) ranUnder(id, file string) *worker {
	b.t.Helper()
	b.file = file
	w := b.start(id)
	b.awaitActive(w, 2)
	was := w.Totals().RecordsIn
	b.send(100, 10)
	b.await("the records are processed", func() bool { return w.Totals().RecordsIn >= was+100 })
	w.Stop(config.Release)
	if err := b.end(w); err != nil {
		b.t.Fatal(err)
	}
	return w
}

// refused wants an instance to refuse to run, with these words among the reasons.
func (b *bench) refused(id, file string, words ...string) {
	b.t.Helper()
	b.file = file
	err := b.end(b.start(id))
	if !errors.Is(err, ErrChanged) {
		b.t.Fatalf("%s ended with %v", id, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			b.t.Errorf("the error lacks %q: %v", word, err)
		}
	}
}

func (b *bench) bus() *control.Bus {
	b.t.Helper()
	cl, err := kgo.NewClient(append(control.Opts(), kgo.SeedBrokers(b.brokers...))...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	return control.NewBus(cl, b.app, b.log)
}

// forget deletes the records of stores.
func (b *bench) forget() {
	b.t.Helper()
	cl, err := kgo.NewClient(append(control.Opts(), kgo.SeedBrokers(b.brokers...))...)
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	stores, err := b.bus().ReadStores(b.t.Context())
	if err != nil || len(stores) == 0 {
		b.t.Fatal(stores, err)
	}
	for _, s := range stores {
		if err := cl.ProduceSync(b.t.Context(), &kgo.Record{Topic: control.TopicName(b.app), Key: []byte("store/" + s.Name)}).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestChangedStore(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 2)
	log := new(lines)
	b.log = slog.New(slog.NewTextHandler(log, nil))
	minute, five := storeFile("count: {store: counts, window: {tumbling: 1m}}"), storeFile("count: {store: counts, window: {tumbling: 5m}}")
	b.ranUnder("a", minute)
	reason := []string{"store counts has another definition", "window: tumbling 1m0s → tumbling 5m0s", b.app + "-counts-changelog", "reset --store counts"}
	b.refused("b", five, reason...) // has no state of its own
	b.refused("a", five, reason...)
	b.refused("b", storeFile("sum: {store: counts, value: len(value), window: {tumbling: 1m}}"), "kind: count → sum")
	b.ranUnder("b", storeFile("count: {store: counts, window: {tumbling: 1m, grace: 10s}, emit: commit}"))

	// The record is lost, and who has state still knows.
	b.forget()
	b.refused("a", five, reason...)

	if strings.Contains(log.String(), "no such store any more") {
		t.Error("a store is missed that nobody has taken away")
	}
	b.ranUnder("a", minute)
	w := b.ranUnder("a", strings.Replace(five, "counts", "counts5", 1))
	if n := w.Totals().Restored; n != 0 {
		t.Errorf("%d rows of the former store were restored", n)
	}
	if want := "store=counts changelog=" + b.app + "-counts-changelog"; !strings.Contains(log.String(), "no such store any more") || !strings.Contains(log.String(), want) {
		t.Errorf("no word of the changelog that is left:\n%s", log)
	}

	// A changelog that is made anew has no definition.
	if _, err := kadm.NewClient(b.client).DeleteTopics(t.Context(), b.app+"-counts-changelog"); err != nil {
		t.Fatal(err)
	}
	b.ranUnder("a", five)
	b.refused("b", minute, "window: tumbling 5m0s → tumbling 1m0s")
}

// silent is Pebble's logger where nobody reads what it says.
type silent struct{}

func (silent) Infof(string, ...any)           {}
func (silent) Errorf(string, ...any)          {}
func (silent) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// What a version has left that knew of no definitions is taken as it is, and gets them.
func TestStateWithoutDefinitions(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 2)
	b.ranUnder("a", countFile)
	b.check()
	b.forget()
	for _, task := range []string{"0_0", "0_1"} {
		p, err := pebble.Open(filepath.Join(b.dir, "a", "tasks", task), &pebble.Options{Logger: silent{}})
		if err == nil {
			err = errors.Join(p.DeleteRange([]byte("\x00\x00d"), []byte("\x00\x00e"), pebble.Sync), p.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.stored("a", "")
	w := b.ranUnder("a", countFile)
	b.check()
	if n := w.Totals().Restored; n != 0 {
		t.Errorf("%d rows were restored though they are on disk", n)
	}
	const definition = "count; key string; value int; rows v1"
	b.stored("a", definition)
	stores, err := b.bus().ReadStores(t.Context())
	if err != nil || len(stores) != 1 || stores[0].Definition != definition || stores[0].Changelog != b.app+"-counts-changelog" {
		t.Errorf("recorded is %+v, %v", stores, err)
	}
}

// stored wants the store of both tasks in an instance's directory to have a definition.
func (b *bench) stored(id, definition string) {
	b.t.Helper()
	e, err := state.NewEngine(state.Config{Dir: filepath.Join(b.dir, id), BallastBytes: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	found := e.Stored()
	if err := e.Close(); err != nil {
		b.t.Fatal(err)
	}
	if len(found) != 2 {
		b.t.Errorf("on disk is %+v", found)
	}
	for _, s := range found {
		if s.Definition != definition {
			b.t.Errorf("on disk is %+v, want %q", s, definition)
		}
	}
}

// resized is the counting file with a store more in the subtopology, in front of the one that is there.
func (b *bench) resized() string {
	file := strings.Replace(countFile, "streams:\n", `streams:
  - name: sizes
    from: {topic: `+b.app+`-in}
    steps: [sum: {store: sizes, value: len(value)}]
`, 1)
	return strings.Replace(file, "      - count", "      - filter: value != \"\"\n      - count", 1)
}

// grown is resized with a subtopology more.
func (b *bench) grown() string {
	return b.resized() + `  - name: results
    from: {topic: ` + b.app + `-out, value: int}
    steps: [count: {store: results}]
`
}

// running is the number of tasks that run, and whether all instances are well.
func running(ws []*worker) (n int, well bool) {
	well = true
	for _, w := range ws {
		s := w.Status()
		n += len(s.Active)
		well = well && s.FailedTasks == 0 && w.Ready()
	}
	return n, well
}

// Instances with a store more take tasks over live from those without it, and the other way round.
func TestOtherStoresTakeOver(t *testing.T) { underBoth(t, 8, testOtherStoresTakeOver) }

func testOtherStoresTakeOver(t *testing.T, b *bench) {
	old := b.spread("a")
	for _, round := range []struct{ file, name string }{{b.resized(), "b"}, {countFile, "c"}} {
		stop := b.load()
		b.file = round.file
		now := b.start(round.name)
		b.await(round.name+" is in", func() bool { return now.Status().Generation > 0 })
		if err := old[0].Leave(context.Background(), leave.Default, "test"); err != nil {
			t.Fatal(err)
		}
		if err := b.end(old[0]); !errors.Is(err, leave.ErrDrained) {
			t.Fatalf("%s ended with %v, want drained", old[0].ID(), err)
		}
		b.awaitActive(now, 8)
		stop()
		b.check()
		if n := now.Totals().Takeovers; n != 8 {
			t.Errorf("%s took %d tasks over live, want 8", round.name, n)
		}
		old = []*worker{now}
	}
}

// A rolling restart into a grown topology and back.
func TestGrownTopologyRolls(t *testing.T) { underBoth(t, 8, testGrownTopologyRolls) }

func testGrownTopologyRolls(t *testing.T, b *bench) {
	b.mayAbort = true // a leader with the former file does not know the tasks of the new subtopology, and who runs them drops them
	ws := b.spread("a", "b")
	stop := b.load()
	for _, file := range []string{b.grown(), countFile} {
		b.file = file
		for i, w := range ws {
			w.Stop(config.Keep)
			if err := b.end(w); err != nil {
				t.Fatal(err)
			}
			ws[i] = b.start(w.ID())
			b.await(w.ID()+" runs again", func() bool { return ws[i].Status().State == control.Running && len(ws[i].Status().Active) > 0 })
		}
		want := 8
		if file != countFile {
			want = 16
		}
		b.await("all tasks run", func() bool { n, well := running(ws); return n == want && well })
	}
	stop()
	b.check()
}

// Subtopologies with other numbers cannot be in one group.
func TestRegroupedTopologyWaits(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 2)
	first := b.start("a")
	b.awaitActive(first, 2)
	b.await("it says what it runs", func() bool {
		all, err := b.bus().ReadStatuses(t.Context())
		return err == nil && len(all) == 1 && len(all[0].Sources) == 1
	})
	other := strings.Replace(countFile, "streams:\n", "streams:\n  - name: results\n    from: {topic: "+b.app+"-out, value: int}\n    steps: [count: {store: results}]\n", 1)
	b.refused("b", other, "subtopology 0 reads "+b.app+"-out here, and "+b.app+"-in on instance a", "stop all instances")
	first.Stop(config.Release)
	if err := b.end(first); err != nil {
		t.Fatal(err)
	}
	b.file = other
	b.awaitActive(b.start("b"), 4)
	b.send(100, 10)
	b.check()
}

func TestRegrouped(t *testing.T) {
	top := &topology.Topology{Subtopologies: []*topology.Subtopology{
		{Sources: []topology.Source{{Topic: "x"}, {Topic: "y"}}}, {ID: 1, Sources: []topology.Source{{Topic: "z"}}},
	}}
	now := time.Now()
	e := &evolution{id: "me", now: func() time.Time { return now }}
	other := func(change func(*control.Status)) control.Status {
		s := control.Status{Instance: "other", State: control.Running, Seen: now, UpdatedMs: now.UnixMilli(), Sources: [][]string{{"x"}, {"z"}}}
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		status control.Status
		want   int
	}{
		"other topics":       {other(func(*control.Status) {}), 1},
		"another order":      {other(func(s *control.Status) { s.Sources[0] = []string{"y", "x"} }), 0},
		"fewer":              {other(func(s *control.Status) { s.Sources = [][]string{{"x", "y"}} }), 0},
		"more":               {other(func(s *control.Status) { s.Sources = [][]string{{"x", "y"}, {"z"}, {"a"}} }), 0},
		"a version before":   {other(func(s *control.Status) { s.Sources = nil }), 0},
		"this one":           {other(func(s *control.Status) { s.Instance = "me" }), 0},
		"one that is gone":   {other(func(s *control.Status) { s.Seen = now.Add(-control.StaleAfter - time.Second) }), 0},
		"one that has left":  {other(func(s *control.Status) { s.Left = "drained" }), 0},
		"one that is ending": {other(func(s *control.Status) { s.State = control.Stopping }), 0},
	} {
		if got := regrouped(top, e.others([]control.Status{c.status})); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
