//go:build integration && linux

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamworker/streamworker/integration/harness"
)

const (
	partitions = 8
	keys       = 20_000
	session    = 6 * time.Second
	// limit bounds every wait for something that takes seconds, even on a loaded machine.
	limit = 3 * time.Minute
)

// world is an application on a cluster, and what may happen to both. All but what is said otherwise is done on the
// goroutine of the test.
type world struct {
	t         *testing.T
	guarantee string
	standbys  int
	cluster   *harness.Cluster
	admin     *kadm.Client
	app       *harness.App
	load      *harness.Load
	meter     *meter

	members    map[string]*member
	ids        []string
	brokers    []*broker
	ended      chan *life     // processes that have ended
	background sync.WaitGroup // commands, slow disks
	begun      time.Time
	lacking    map[string]bool
}

// broker does what is asked of one broker in order.
type broker struct {
	i    int
	jobs chan func()
	done chan struct{}
	away Op // what took it away, "" if it is there: of the test's goroutine
}

// newWorld starts the instances and waits until they share the tasks and have counted every key once.
func newWorld(t *testing.T, c *harness.Cluster, guarantee string, standbys int, ids ...string) *world {
	t.Helper()
	w := &world{
		t: t, guarantee: guarantee, standbys: standbys, cluster: c, admin: kadm.NewClient(c.Client(t)), ids: ids, meter: newMeter(),
		app: harness.NewApp(t, &c.Kafka, "chaos", partitions), members: map[string]*member{}, ended: make(chan *life, 1000), lacking: map[string]bool{},
	}
	for i := range c.Nodes() {
		b := &broker{i: i, jobs: make(chan func(), 1000), done: make(chan struct{})}
		go func() {
			defer close(b.done)
			for job := range b.jobs {
				job()
			}
		}()
		w.brokers = append(w.brokers, b)
		w.followBroker(i)
	}
	w.load = harness.NewLoad(t, w.app, keys)
	for _, id := range ids {
		w.members[id] = newMember(w, id)
		w.members[id].ask("keep", false)
	}
	w.awaitBalanced()
	w.load.All()
	w.awaitConsumed()
	return w
}

// config writes the configuration for a way to stop, and returns its path.
func (w *world) config(mode string) string {
	const file = `app: %s
kafka: {brokers: ["%s"], heartbeat: 500ms, session_timeout: %v, rebalance_timeout: 15s}
guarantee: %s
on_terminate: %s
internal_topics: {replication: %d}
standbys: %d
learners: {acceptable_lag: 200}
state: {row_cache: 32MiB, block_cache: 16MiB, memtables: 16MiB}
log: {format: json, level: debug}
streams:
  - name: events
    from: {topic: %s}
    steps:
      - count: {store: counts}
      - to: {topic: %s, value: int}
`
	text := fmt.Sprintf(file, w.app.Name, w.cluster.Address, session, w.guarantee, mode, w.cluster.Nodes(), w.standbys, w.app.Input(), w.app.Output())
	path := filepath.Join(w.app.Dir, mode+".yaml")
	if _, err := os.Stat(path); err == nil {
		return path // an instance that has just been started may be about to read it
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// say tells what happens. It may be called by any goroutine.
func (w *world) say(format string, args ...any) {
	at := ""
	if !w.begun.IsZero() {
		at = fmt.Sprintf("%6.1fs ", time.Since(w.begun).Seconds())
	}
	w.t.Logf(at+format, args...)
}

// lack says once that this machine cannot have some kind of fault.
func (w *world) lack(what string, why error) {
	if !w.lacking[what] {
		w.lacking[what] = true
		w.t.Logf("WITHOUT %s, which this machine does not allow: %v", what, why)
	}
}

// play does the steps at their times.
func (w *world) play(steps []Step) {
	w.begun = time.Now()
	for _, s := range steps {
		w.attend(time.Until(w.begun.Add(s.At)))
		w.say("%s", strings.TrimSpace(s.String()))
		if s.Instance != "" {
			w.members[s.Instance].step(s)
		} else {
			w.brokerStep(s)
		}
	}
}

// attend waits, and starts again what has ended meanwhile.
func (w *world) attend(d time.Duration) {
	timeout := time.After(d)
	for {
		select {
		case l := <-w.ended:
			l.over(w.t)
		case <-timeout:
			return
		}
	}
}

// until attends until the condition holds.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); !condition(); w.attend(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("after %v it is still not so that %s", limit, what)
		}
	}
}

func (w *world) awaitBalanced() {
	w.t.Helper()
	var last harness.Status
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the last status: %+v", last)
		}
	}()
	w.until(fmt.Sprintf("%v share %d tasks", w.ids, partitions), func() bool {
		last = w.app.Status()
		return last.Balanced(partitions, w.ids...)
	})
}

// command runs a streamworker command beside the schedule; that it fails while Kafka is in trouble is no fault.
func (w *world) command(name string, flags ...string) {
	args := append([]string{name, "--brokers", w.cluster.Address, "--app", w.app.Name}, flags...)
	w.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if out, err := exec.CommandContext(ctx, harness.Binary(), args...).CombinedOutput(); err != nil {
			w.say("%s %v: %v: %s", name, flags, err, out)
		}
	})
}

func (w *world) brokerStep(s Step) {
	b := w.brokers[s.Broker]
	report := func(err error) {
		if err != nil {
			w.t.Errorf("%s: %v", s.Op, err)
		}
	}
	switch s.Op {
	case BrokerKill, BrokerTerm, BrokerHang:
		if !w.inSync() {
			w.say("  not now: not all replicas are in sync")
			return
		}
		b.away = s.Op
	default:
		if b.away == "" {
			return
		}
		b.away = ""
	}
	b.jobs <- func() {
		switch s.Op {
		case BrokerKill:
			w.cluster.KillNode(w.t, b.i)
		case BrokerTerm:
			report(w.cluster.StopNode(b.i))
		case BrokerStart:
			report(w.cluster.StartNode(b.i))
			w.followBroker(b.i)
		case BrokerHang:
			report(w.signalBroker(b.i, syscall.SIGSTOP))
		case BrokerCont:
			report(w.signalBroker(b.i, syscall.SIGCONT))
		default: // of an instance
		}
	}
}

func (w *world) signalBroker(i int, s syscall.Signal) error {
	pid, ok := w.cluster.NodePid(i)
	if !ok {
		return fmt.Errorf("broker %d does not run", i)
	}
	return syscall.Kill(pid, s)
}

func (w *world) followBroker(i int) {
	if pid, ok := w.cluster.NodePid(i); ok {
		w.meter.follow(pid, "brokers")
	}
}

// inSync says whether every partition has all its replicas.
func (w *world) inSync() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	all, err := w.admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return false
	}
	for _, d := range all {
		for _, p := range d.Partitions {
			if p.Err != nil || p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
				return false
			}
		}
	}
	return true
}

// recover ends all faults and waits until everything is as it was: all brokers in sync, all instances sharing the
// tasks, each one stopping by keep.
func (w *world) recover() {
	w.t.Helper()
	for _, b := range w.brokers {
		switch b.away {
		case "":
		case BrokerHang:
			w.brokerStep(Step{Op: BrokerCont, Broker: b.i})
		default:
			w.brokerStep(Step{Op: BrokerStart, Broker: b.i})
		}
	}
	for _, id := range w.ids {
		m := w.members[id]
		m.step(Step{Op: Heal, Arg: ArgDeliver})
		if m.now() != nil {
			m.step(Step{Op: Cont})
		}
		m.ask("keep", false)
	}
	w.background.Wait()
	w.until("all replicas are in sync", w.inSync)
	w.say("the brokers have recovered")
	w.awaitBalanced()
	w.say("the instances have recovered")
	for _, id := range w.ids {
		m := w.members[id]
		if l := m.now(); l != nil && l.mode != "keep" {
			m.mode = "keep"
			l.asked = true
			l.Signal(syscall.SIGTERM)
			w.until(l.Name+" has ended", func() bool { return !l.Running() })
		}
	}
	w.awaitBalanced()
}

// awaitConsumed waits until the group has committed the end of the input.
func (w *world) awaitConsumed() {
	w.t.Helper()
	w.until("all input is processed and committed", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		committed, err := w.admin.FetchOffsets(ctx, w.app.Name)
		if err != nil {
			return false
		}
		ends, err := w.admin.ListEndOffsets(ctx, w.app.Input())
		if err != nil || ends.Error() != nil {
			return false
		}
		done := 0
		ends.Each(func(end kadm.ListedOffset) {
			if at, ok := committed.Lookup(end.Topic, end.Partition); ok && at.At == end.Offset {
				done++
			}
		})
		return done == partitions
	})
}

// stop ends all instances as a shutdown does.
func (w *world) stop() {
	w.t.Helper()
	for _, id := range w.ids {
		m := w.members[id]
		m.want = false
		if l := m.now(); l != nil {
			l.asked = true
			l.Signal(syscall.SIGTERM)
		}
	}
	w.until("all instances have ended", func() bool {
		for _, id := range w.ids {
			if w.members[id].now() != nil {
				return false
			}
		}
		return true
	})
	w.attend(0)
	for _, b := range w.brokers {
		close(b.jobs)
		<-b.done
	}
}

// lives are all processes that ran.
func (w *world) lives() []*life {
	var all []*life
	for _, id := range w.ids {
		all = append(all, w.members[id].lives...)
	}
	return all
}

// history is what all processes did.
func (w *world) history() []Record {
	var all []Record
	for _, l := range w.lives() {
		all = append(append(all, Records(l.Name, l.Events())...), Record{At: l.ended, Process: l.Name, What: Ended})
	}
	return all
}

// What instances log when work is dropped that has to be done again.
const (
	aborted = "the transaction is aborted; its tasks are opened anew from their last commit"
	unheard = "the last commit was not acknowledged: the records since the one before it will be processed again"
)

// count is how many log lines have this message, and how many of these come from processes that were told to stop and
// waited in vain for their last commit, for as long as they may.
func (w *world) count(msg string) (all, late int) {
	const patience = 2900 * time.Millisecond // a little less
	for _, l := range w.lives() {
		var stopping time.Time
		for _, e := range l.Events() {
			switch {
			case e.Msg == "stopping" || strings.HasPrefix(e.Msg, "giving up the tasks"):
				stopping = e.Time
			case e.Msg == msg:
				all++
				if !stopping.IsZero() && e.Time.Sub(stopping) >= patience {
					late++
				}
			}
		}
	}
	return all, late
}
