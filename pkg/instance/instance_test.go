package instance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
)

const countFile = `
app: %s
kafka: {brokers: ["%s"], heartbeat: 200ms, session_timeout: 6s, rebalance_timeout: 20s}
commit_interval: 50ms
guarantee: %s
threads: 2
learners: {acceptable_lag: 100}
streams:
  - name: events
    from: {topic: %s-in}
    steps:
      - count: {store: counts}
      - to: {topic: %s-out, value: int}
`

// bench is a Kafka with one counting application on it.
type bench struct {
	t         *testing.T
	guarantee config.Guarantee
	mayAbort  bool                               // something happens that no transaction survives
	file      string                             // the configuration, with places for the app, the broker, the guarantee, and the app twice
	program   func(app string) *topology.Program // nil: the file says what to compute
	app       string
	brokers   []string
	fake      *kfake.Cluster // nil: a real Kafka
	dir       string
	client    *kgo.Client
	dialer    func(ctx context.Context, network, host string) (net.Conn, error) // of instances started from now on
	disk      vfs.FS                                                            // under the state of instances started from now on; nil: the real one
	events    tasks.Events                                                      // called by instances started from now on
	sent      map[string]int64
	log       *slog.Logger

	mu        sync.Mutex
	takeovers []tasks.TakeoverInfo
}

// underBoth runs a test under at least once and under exactly once.
func underBoth(t *testing.T, partitions int32, test func(*testing.T, *bench)) {
	for _, g := range []config.Guarantee{config.AtLeastOnce, config.ExactlyOnce} {
		t.Run(string(g), func(t *testing.T) { test(t, newBench(t, g, partitions)) })
	}
}

func newBench(t *testing.T, guarantee config.Guarantee, partitions int32) *bench {
	t.Helper()
	b := &bench{t: t, guarantee: guarantee, file: countFile, app: fmt.Sprintf("instance-%d", time.Now().UnixNano()), dir: t.TempDir(), sent: map[string]int64{}}
	if addr := os.Getenv("STREAMWORKER_TEST_BROKERS"); addr != "" {
		b.brokers = []string{addr}
	} else {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		b.brokers, b.fake = c.ListenAddrs(), c
	}
	var out io.Writer = io.Discard
	if testing.Verbose() {
		out = os.Stderr
	}
	b.log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	b.client = cl
	if _, err := kadm.NewClient(cl).CreateTopics(context.Background(), partitions, 1, nil, b.app+"-in", b.app+"-out"); err != nil {
		t.Fatal(err)
	}
	return b
}

// worker is one instance of the application, run in this process.
type worker struct {
	*Instance
	done chan error
}

func (b *bench) start(id string) *worker {
	b.t.Helper()
	src := fmt.Sprintf(b.file, b.app, b.brokers[0], b.guarantee, b.app, b.app)
	cfg, err := config.Parse("count.yaml", []byte(src), nil, b.overrides(id))
	if err != nil {
		b.t.Fatal(err)
	}
	w := &worker{done: make(chan error, 1)}
	w.Instance = New(cfg, Options{Logger: b.log, Dialer: b.dialer, StateFS: b.disk, Events: tasks.Events{TakenOver: func(k tasks.TakeoverInfo) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.takeovers = append(b.takeovers, k)
	}}})
	w.Observe(b.events)
	go func() { w.done <- w.Run(context.Background()) }()
	b.t.Cleanup(func() {
		w.Stop(config.Release)
		b.end(w)
		if n := w.Totals().Aborts; n > 0 && !b.mayAbort {
			b.t.Errorf("%s aborted %d transactions, though nothing failed", id, n)
		}
	})
	return w
}

func (b *bench) overrides(id string) config.Overrides {
	o := config.Overrides{InstanceID: id, StateDir: filepath.Join(b.dir, id)}
	if b.program != nil {
		o.Program = b.program(b.app)
	}
	return o
}

// end waits for the instance to end and returns why.
func (b *bench) end(w *worker) error {
	b.t.Helper()
	select {
	case err := <-w.done:
		w.done <- err
		return err
	case <-time.After(60 * time.Second):
		b.t.Fatalf("instance %s does not end: %+v", w.ID(), w.Tasks())
		return nil
	}
}

// await waits until the condition holds.
func (b *bench) await(what string, cond func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			b.t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *bench) awaitActive(w *worker, n int) {
	b.t.Helper()
	b.await(fmt.Sprintf("%s runs %d tasks", w.ID(), n), func() bool {
		return len(w.Status().Active) == n && w.Ready()
	})
}

// send produces n records over the keys and remembers the counts to expect.
func (b *bench) send(n, keys int) {
	b.t.Helper()
	for i := range n {
		key := fmt.Sprintf("key-%d", i%keys)
		b.sent[key]++
		b.client.Produce(context.Background(), &kgo.Record{Topic: b.app + "-in", Key: []byte(key), Value: []byte("x")}, nil)
	}
	if err := b.client.Flush(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// check reads the output until the last count of every key is the one sent.
func (b *bench) check() {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(b.app+"-out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	got := map[string]int64{}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for {
		wrong := 0
		for k, n := range b.sent {
			if got[k] != n {
				wrong++
			}
		}
		if wrong == 0 {
			break
		}
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value)) })
		if ctx.Err() != nil {
			b.t.Fatalf("%d of %d keys have a wrong count", wrong, len(b.sent))
		}
	}
	// Nothing may follow that makes a count too high.
	ctx, cancel = context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value)) })
	}
	for k, n := range b.sent {
		if got[k] != n {
			b.t.Errorf("%s: %d, sent %d", k, got[k], n)
		}
	}
}

// outputs are all committed counts of each key, in the order in which they were written.
func (b *bench) outputs() map[string][]int64 {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(b.client).ListCommittedOffsets(ctx, b.app+"-out")
	if err != nil {
		b.t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeTopics(b.app+"-out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	out := map[string][]int64{}
	for len(left) > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out[string(r.Key)] = append(out[string(r.Key)], int64(binary.BigEndian.Uint64(r.Value)))
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	if len(left) > 0 {
		b.t.Fatalf("the output does not come to its end: %v", left)
	}
	return out
}

func TestOneInstanceCounts(t *testing.T) { underBoth(t, 4, testOneInstanceCounts) }

func testOneInstanceCounts(t *testing.T, b *bench) {
	w := b.start("a")
	b.awaitActive(w, 4)
	b.send(2000, 100)
	b.check()
	w.Stop(config.Release)
	if err := b.end(w); err != nil {
		t.Fatal(err)
	}
}

func TestRestartKeepsStateAndCounts(t *testing.T) { underBoth(t, 4, testRestartKeepsStateAndCounts) }

func testRestartKeepsStateAndCounts(t *testing.T, b *bench) {
	w := b.start("a")
	b.awaitActive(w, 4)
	b.send(2000, 100)
	b.check()
	w.Stop(config.Keep)
	if err := b.end(w); err != nil {
		t.Fatal(err)
	}
	w = b.start("a")
	b.awaitActive(w, 4)
	b.send(2000, 100)
	b.check()
	if n := w.Totals().Restored; n != 0 {
		t.Errorf("%d changelog records were replayed after a clean stop, want none", n)
	}
}

func TestDrainUnderLoad(t *testing.T) { underBoth(t, 8, testDrainUnderLoad) }

func testDrainUnderLoad(t *testing.T, b *bench) {
	ws := b.spread("a", "b", "c")
	a := ws[0]
	stop := b.load()
	time.Sleep(300 * time.Millisecond)
	moving := len(a.Status().Active)
	b.mu.Lock()
	before := len(b.takeovers)
	b.mu.Unlock()
	if err := a.Leave(context.Background(), leave.Default, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(a); !errors.Is(err, leave.ErrDrained) {
		t.Fatalf("a ended with %v, want drained", err)
	}
	if st := a.Status(); st.State != control.Drained {
		t.Errorf("state %s after the drain", st.State)
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	b.check()
	b.await("the takeovers are measured", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.takeovers)-before >= moving
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.takeovers) - before; n != moving {
		t.Errorf("%d takeovers, want %d: each task moves once", n, moving)
	}
	for _, k := range b.takeovers[before:] {
		t.Logf("task %s: gap %s, slowest %s", k.Task, k.Gap, k.Slowest)
	}
}

// spread starts instances until each runs some of the 8 tasks, and returns them in order of the names.
func (b *bench) spread(names ...string) []*worker {
	b.t.Helper()
	var ws []*worker
	for i, n := range names {
		ws = append(ws, b.start(n))
		if i == 0 {
			b.awaitActive(ws[0], 8)
			b.send(1000, 200)
		}
	}
	b.await("the tasks are spread", func() bool {
		sum, least := 0, 8
		for _, w := range ws {
			n := len(w.Status().Active)
			sum, least = sum+n, min(least, n)
		}
		return sum == 8 && least >= 8/len(ws)
	})
	return ws
}

// load sends records until the function that it returns is called.
func (b *bench) load() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
				b.send(50, 200)
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func TestTwoLeaveAtOnce(t *testing.T) { underBoth(t, 8, testTwoLeaveAtOnce) }

func testTwoLeaveAtOnce(t *testing.T, b *bench) {
	ws := b.spread("a", "b", "c", "d")
	stop := b.load()
	for _, w := range ws[:2] {
		if err := w.Leave(context.Background(), leave.Default, "test"); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range ws[:2] {
		if err := b.end(w); !errors.Is(err, leave.ErrDrained) {
			t.Fatalf("%s ended with %v, want drained", w.ID(), err)
		}
	}
	stop()
	b.check()
}

func TestCancelledLeaveStays(t *testing.T) { underBoth(t, 8, testCancelledLeaveStays) }

func testCancelledLeaveStays(t *testing.T, b *bench) {
	ws := b.spread("a", "b")
	stop := b.load()
	if err := ws[0].Leave(context.Background(), leave.Default, "test"); err != nil {
		t.Fatal(err)
	}
	if err := ws[0].Cancel(context.Background()); err != nil && !errors.Is(err, leave.ErrDone) {
		t.Fatal(err)
	}
	b.await("the tasks are spread again", func() bool {
		n, m := len(ws[0].Status().Active), len(ws[1].Status().Active)
		return n+m == 8 && n >= 3 && m >= 3 && ws[0].Status().State == control.Running
	})
	stop()
	b.check()
}

func TestTheLastInstanceStaysUntilItsDeadline(t *testing.T) {
	underBoth(t, 8, testTheLastInstanceStaysUntilItsDeadline)
}

func testTheLastInstanceStaysUntilItsDeadline(t *testing.T, b *bench) {
	w := b.spread("a")[0]
	if err := w.Leave(context.Background(), leave.At(time.Now().Add(2*time.Second)), "test"); err != nil {
		t.Fatal(err)
	}
	b.await("it drains", func() bool { return w.Status().State == control.Draining })
	b.send(500, 100)
	b.check()
	if err := b.end(w); !errors.Is(err, leave.ErrTimedOut) {
		t.Fatalf("ended with %v, want timed out", err)
	}
}

func TestNowGivesEverythingUp(t *testing.T) { underBoth(t, 8, testNowGivesEverythingUp) }

func testNowGivesEverythingUp(t *testing.T, b *bench) {
	ws := b.spread("a", "b")
	stop := b.load()
	if err := ws[0].Leave(context.Background(), leave.Now, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(ws[0]); !errors.Is(err, leave.ErrNow) {
		t.Fatalf("ended with %v, want now", err)
	}
	b.awaitActive(ws[1], 8)
	stop()
	b.check()
}

func TestStopReleasesAtOnce(t *testing.T) { underBoth(t, 8, testStopReleasesAtOnce) }

func testStopReleasesAtOnce(t *testing.T, b *bench) {
	ws := b.spread("a", "b", "c")
	stop := b.load()
	ws[0].Stop(config.Release)
	if err := b.end(ws[0]); err != nil {
		t.Fatal(err)
	}
	b.await("the others run everything", func() bool {
		return len(ws[1].Status().Active)+len(ws[2].Status().Active) == 8 && ws[1].Ready() && ws[2].Ready()
	})
	stop()
	b.check()
}

const wordFile = `
app: %s
kafka: {brokers: ["%s"], heartbeat: 200ms, session_timeout: 6s, rebalance_timeout: 20s}
commit_interval: 50ms
guarantee: %s
threads: 2
learners: {acceptable_lag: 100}
streams:
  - name: lines
    from: {topic: %s-in, value: string}
    steps:
      - flat_map: split(lower(value), " ")
      - filter: value != ""
      - rekey: value
      - count: {store: counts}
      - to: {topic: %s-out, value: int}
`

func TestWordCountMovesBothItsParts(t *testing.T) { underBoth(t, 4, testWordCountMovesBothItsParts) }

func testWordCountMovesBothItsParts(t *testing.T, b *bench) {
	b.file = wordFile
	words := []string{"the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"}
	say := func(n int) {
		for i := range n {
			line := ""
			for j := range 4 {
				w := words[(i*7+j*3)%len(words)]
				b.sent[w]++
				line += strings.ToUpper(w[:1]) + w[1:] + " "
			}
			b.client.Produce(context.Background(), &kgo.Record{Topic: b.app + "-in", Value: []byte(line)}, nil)
		}
		if err := b.client.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	a := b.start("a")
	b.awaitActive(a, 8)
	say(300)
	c := b.start("b")
	b.await("the tasks are spread", func() bool {
		n, m := len(a.Status().Active), len(c.Status().Active)
		return n+m == 8 && n >= 3 && m >= 3
	})
	for range 10 {
		say(20)
		time.Sleep(20 * time.Millisecond)
	}
	if err := a.Leave(context.Background(), leave.Default, "test"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		say(20)
		time.Sleep(20 * time.Millisecond)
	}
	if err := b.end(a); !errors.Is(err, leave.ErrDrained) {
		t.Fatal(err)
	}
	b.check()
}
