//go:build integration

// Package integration shows the product on a real Kafka, as its users run it: processes of the built binary. The
// tests use the broker of STREAMWORKER_TEST_BROKERS, else they start one (see scripts/kafka.sh). Those that restart
// Kafka or need other settings of it always start one of their own.
//
// STREAMWORKER_SIZE=large runs the same at the size that figures are published for.
package integration

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// broker serves all tests that do not need one of their own.
var broker *harness.Kafka

// large is set when figures are wanted, not only right results.
var large = os.Getenv("STREAMWORKER_SIZE") == "large"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := harness.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var shared bool
	if broker, shared = harness.Existing(); !shared {
		var err error
		if broker, err = harness.NewKafka(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer broker.Remove()
	}
	return m.Run()
}

const (
	partitions = 8
	rate       = 5000 // records a second
	keys       = 100_000
	// drained is the exit code of an instance that has left after handing everything over.
	drained = 10
	// limit bounds every wait for something that takes seconds.
	limit = 3 * time.Minute
)

// slow makes warming up take seconds, so that a test can do things in the middle of it.
const slow = "learners: {bandwidth: 128KiB, acceptable_lag: 100}"

// exactlyOnce is the guarantee that is not the default.
const exactlyOnce = "guarantee: exactly_once"

// underBoth runs a test under each guarantee.
func underBoth(t *testing.T, test func(t *testing.T, guarantee string)) {
	for _, g := range []string{"at_least_once", "exactly_once"} {
		t.Run(g, func(t *testing.T) { test(t, "guarantee: "+g) })
	}
}

// scene is an application under load.
type scene struct {
	*harness.App
	t         *testing.T
	load      *harness.Load
	watch     *harness.Watch
	exactly   bool
	processes map[string]*harness.Process // the newest of each instance
	all       []*harness.Process
	input     []string // tasks that the load has records for
}

// newScene starts the instances, in this order, fills in the keys, and waits until all of that has been counted.
func newScene(t *testing.T, k *harness.Kafka, keys int, instances []string, settings ...string) *scene {
	t.Helper()
	s := makeScene(t, k, keys, settings...)
	s.begin(instances...)
	return s
}

// makeScene makes a scene in which nothing runs yet.
func makeScene(t *testing.T, k *harness.Kafka, keys int, settings ...string) *scene {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	s := &scene{t: t, exactly: slices.Contains(settings, exactlyOnce), processes: map[string]*harness.Process{}}
	s.App = harness.NewApp(t, k, name, partitions, append(settings, harness.Metrics)...)
	s.load, s.watch = harness.NewLoad(t, s.App, keys), harness.NewWatch(t, s.App, keys)
	return s
}

// begin starts the instances, fills in the keys and waits until they are counted.
func (s *scene) begin(instances ...string) {
	s.t.Helper()
	for _, id := range instances {
		s.start(id)
		// The first to join leads the group.
		harness.Until(s.t, limit, id+" is running", func() bool { return s.Status().Instance(id).State == "running" })
	}
	s.load.All()
	s.AwaitBalanced(instances...)
	s.watch.AwaitExact(s.load, limit)
}

// edit changes the configuration before anything runs.
func (s *scene) edit(from, to string) {
	s.t.Helper()
	config := read(s.t, s.App)
	if !strings.Contains(config, from) {
		s.t.Fatalf("the configuration has no %q", from)
	}
	s.Write(strings.Replace(config, from, to, 1))
}

// endExact stops the load and waits for exact counts, in a scene in which nothing has died.
func (s *scene) endExact() {
	s.t.Helper()
	s.load.Stop()
	s.watch.AwaitExact(s.load, limit)
	for _, p := range s.all {
		for _, e := range p.Events() {
			if strings.HasPrefix(e.Msg, "the transaction is aborted") {
				s.t.Errorf("%s: %s: %s", p.Name, e.Msg, e.Text("error"))
			}
		}
		if !p.Running() {
			continue
		}
		if n, err := p.Metric("streamworker_transaction_aborts_total"); err != nil || n != 0 {
			s.t.Errorf("%s aborted %v transactions in a planned move (%v)", p.Name, n, err)
		}
	}
}

// endAfterCrash stops the load and waits for what the guarantee promises after a crash of the owner of some
// partitions.
func (s *scene) endAfterCrash(crashed ...int32) {
	s.t.Helper()
	s.load.Stop()
	if s.exactly {
		s.watch.AwaitExact(s.load, limit)
	} else {
		s.watch.AwaitComplete(s.load, limit, crashed...)
	}
}

func (s *scene) start(id string, flags ...string) *harness.Process {
	s.t.Helper()
	p := s.Start(id, flags...)
	s.processes[id], s.all = p, append(s.all, p)
	return p
}

// partitionsOf are the partitions whose tasks the instance runs.
func (s *scene) partitionsOf(id string) []int32 {
	s.t.Helper()
	var found []int32
	for _, task := range s.Status().Instance(id).Active {
		_, partition, _ := strings.Cut(task, "_")
		p, err := strconv.ParseInt(partition, 10, 32)
		if err != nil {
			s.t.Fatalf("task %q has no partition", task)
		}
		found = append(found, int32(p))
	}
	return found
}

// awaitMidDrain waits until the instance is draining and a learner of its tasks is at work, and returns the hosts of
// such learners.
func (s *scene) awaitMidDrain(id string) []string {
	s.t.Helper()
	var hosts []string
	harness.Until(s.t, limit, id+" is in mid-drain", func() bool {
		status := s.Status()
		if s.t.Failed() || !s.processes[id].Running() {
			s.t.Fatalf("%s is not draining any more: too fast to act in the middle", id)
		}
		hosts = nil
		for _, i := range status.Instances {
			if slices.ContainsFunc(i.Learning, func(l harness.Learning) bool { return !l.Ready }) {
				hosts = append(hosts, i.ID)
			}
		}
		return status.Instance(id).State == "draining" && len(hosts) > 0
	})
	return hosts
}

// awaitDrained waits until the instance has left by itself.
func (s *scene) awaitDrained(id string) {
	s.t.Helper()
	if code := s.processes[id].Wait(limit); code != drained {
		s.t.Fatalf("%s ended with exit code %d, want %d", id, code, drained)
	}
}

// takeovers are the handovers since a time, to any process.
func (s *scene) takeovers(since time.Time) []harness.Takeover {
	var all []*harness.Process
	for _, p := range s.processes {
		all = append(all, p)
	}
	return harness.Takeovers(since, all...)
}

// movedOnce fails the test unless each of the tasks was taken over exactly once, and no other more often: one may move
// to even the loads when the leaving one's tasks went to where their state was. It prints how.
func (s *scene) movedOnce(took []harness.Takeover, tasks []string) {
	s.t.Helper()
	times := map[string]int{}
	rounds := map[int32]bool{}
	for _, h := range took {
		times[h.Task]++
		rounds[h.Generation] = true
	}
	for _, task := range tasks {
		if times[task] != 1 {
			s.t.Errorf("task %s was handed over %d times, want once", task, times[task])
		}
	}
	for task, n := range times {
		if n > 1 {
			s.t.Errorf("task %s was handed over %d times, want at most once", task, n)
		}
	}
	s.t.Logf("%d tasks moved in %d rebalances; %s", len(took), len(rounds), figures(took))
}

func figures(took []harness.Takeover) string {
	var gaps, slowest []time.Duration
	for _, h := range took {
		gaps, slowest = append(gaps, h.Gap), append(slowest, h.Slowest)
	}
	return fmt.Sprintf("gap: %v; slowest record: %v", harness.Summarize(gaps), harness.Summarize(slowest))
}

// reportPauses prints the longest time without output since the last reset, of partitions that moved and of those
// that did not, as far as they have input.
func (s *scene) reportPauses(moved []int32) {
	s.t.Helper()
	var of, others []time.Duration
	for p, pause := range s.watch.Pauses() {
		if !slices.Contains(s.input, fmt.Sprintf("0_%d", p)) {
			continue
		}
		if slices.Contains(moved, int32(p)) {
			of = append(of, pause)
		} else {
			others = append(others, pause)
		}
	}
	s.t.Logf("longest time without output, seen from outside: moved: %v; others: %v", harness.Summarize(of), harness.Summarize(others))
}

// running tells whether so many instances run all tasks and nothing is on the move.
func (s *scene) running(instances int) bool {
	active, n := 0, 0
	for _, i := range s.Status().Instances {
		if i.State != "running" || len(i.Learning) > 0 {
			return false
		}
		active, n = active+len(i.Active), n+1
	}
	return active == partitions && n == instances
}

// loaded are those of the tasks that had records while the load ran: only they tell of their handover.
func (s *scene) loaded(tasks []string) []string {
	return slices.DeleteFunc(slices.Clone(tasks), func(task string) bool {
		return !slices.Contains(s.input, task)
	})
}

// awaitTakeovers waits until the new owner of each of the tasks that have input has told of its first records.
func (s *scene) awaitTakeovers(since time.Time, tasks []string) []harness.Takeover {
	s.t.Helper()
	var took []harness.Takeover
	harness.Until(s.t, limit, "the new owners have processed records", func() bool {
		took = s.takeovers(since)
		for _, task := range s.loaded(tasks) {
			if !slices.ContainsFunc(took, func(h harness.Takeover) bool { return h.Task == task }) {
				return false
			}
		}
		return true
	})
	return took
}

// flow starts the load into some partitions, or into all.
func (s *scene) flow(rate int, into ...int32) {
	s.load.Start(rate, into...)
	s.input = nil
	for p := range int32(partitions) {
		if len(into) == 0 || slices.Contains(into, p) {
			s.input = append(s.input, fmt.Sprintf("0_%d", p))
		}
	}
}

// goOn waits until so many more records were sent.
func (s *scene) goOn(records int64) {
	s.t.Helper()
	sent := s.load.Sent()
	harness.Until(s.t, limit, "more records were sent", func() bool { return s.load.Sent() >= sent+records })
}

// tolerable is far above what a handover takes even on a loaded machine, and far below what waiting for a crashed
// member's session takes.
const tolerable = 8 * time.Second

// othersFlowed fails the test if partitions other than the given ones were without output for long.
func (s *scene) othersFlowed(stopped []int32) {
	s.t.Helper()
	s.reportPauses(stopped)
	for p, pause := range s.watch.Pauses() {
		if !slices.Contains(stopped, int32(p)) && pause > tolerable {
			s.t.Errorf("partition %d was without output for %v though nothing happened to its owner", p, pause)
		}
	}
}
