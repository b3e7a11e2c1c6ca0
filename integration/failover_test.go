//go:build integration

package integration

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// session is the shortest that brokers allow by default.
const session = 6 * time.Second

// failover is a scene with short sessions. Transactions time out late: where one that a dead process left open
// were waited for instead of ended, that would show.
func failover(t *testing.T, keys int, settings ...string) *scene {
	t.Helper()
	s := makeScene(t, broker, keys, settings...)
	s.edit("kafka: {", "kafka: {session_timeout: 6s, heartbeat: 500ms, transaction_timeout: 1m, ")
	return s
}

// inFlight is longer than what a dead process wrote last takes to be read, and shorter than a session.
const inFlight = 2 * time.Second

// failoverLimit is what a takeover may take, session and two seconds, and what a loaded machine may add. One that waits
// for the transaction of the dead takes a minute.
const failoverLimit = session + 2*time.Second + 4*time.Second

// awaitFlow waits until output of all partitions has come after a time, and prints the longest pause of some of them
// since the last reset. It fails the test if one is longer than most.
func (s *scene) awaitFlow(what string, after time.Time, of []int32, most time.Duration) {
	s.t.Helper()
	harness.Until(s.t, limit, "all partitions have output again", func() bool { return s.watch.Flows(after) })
	pauses := s.watch.Pauses()
	for _, p := range of {
		s.t.Logf("%s: task 0_%d was without output for %d ms", what, p, pauses[p].Milliseconds())
		if pauses[p] > most {
			s.t.Errorf("task 0_%d was without output for %v, at most %v were to be expected", p, pauses[p], most)
		}
	}
}

// replayedBy sums the changelog records that the instances replayed for these tasks since a time, and fails the test
// if one began with nothing at hand.
func (s *scene) replayedBy(ids []string, tasks []string, since time.Time) (records int64) {
	s.t.Helper()
	opened := map[string]bool{}
	for _, id := range ids {
		for _, e := range s.restored(tasks, id, since) {
			opened[e.Text("task")] = true
			records += int64(e.Number("records"))
			if local, _ := e.Fields["local"].(bool); !local {
				s.t.Errorf("%s restored task %s without any local state", id, e.Text("task"))
			}
		}
	}
	if len(opened) < len(tasks) {
		s.t.Errorf("of the tasks %v only %d are said to have been restored", tasks, len(opened))
	}
	return records
}

// TestStandbyTakesOver kills an instance whose tasks have standbys elsewhere.
func TestStandbyTakesOver(t *testing.T) { underBoth(t, standbyTakesOver) }

func standbyTakesOver(t *testing.T, guarantee string) {
	s := failover(t, keys, guarantee, "standbys: 1")
	s.begin("a", "b", "c")
	harness.Until(t, limit, "every task has a standby", func() bool {
		n := 0
		for _, i := range s.Status().Instances {
			n += len(i.Standby)
		}
		return n == partitions
	})
	s.flow(rate / 5)
	s.goOn(rate / 5)
	tasks, crashed := s.Status().Instance("c").Active, s.partitionsOf("c")
	s.watch.Reset()
	since := time.Now()
	s.processes["c"].Kill()
	s.awaitFlow("killed, with a standby", since.Add(inFlight), crashed, failoverLimit)
	s.othersFlowed(crashed)
	s.replayedBy([]string{"a", "b"}, tasks, since)
	s.endAfterCrash(crashed...)
}

// TestFormerOwnerTakesOver kills an instance whose tasks ran elsewhere before: what is on disk there is brought up to
// date by the changelogs' tails.
func TestFormerOwnerTakesOver(t *testing.T) { underBoth(t, formerOwnerTakesOver) }

func formerOwnerTakesOver(t *testing.T, guarantee string) {
	s := failover(t, keys, guarantee)
	s.begin("a", "b")
	sent := s.load.Sent()
	s.flow(rate / 5)
	s.start("c")
	s.AwaitBalanced("a", "b", "c")
	s.goOn(rate)
	tasks, crashed := s.Status().Instance("c").Active, s.partitionsOf("c")
	s.watch.Reset()
	since := time.Now()
	s.processes["c"].Kill()
	s.awaitFlow("killed, with old state elsewhere", since.Add(inFlight), crashed, failoverLimit)
	s.othersFlowed(crashed)
	s.load.Stop()
	n, tail := s.replayedBy([]string{"a", "b"}, tasks, since), s.load.Sent()-sent
	t.Logf("%d changelog records replayed of %d keys of state; %d records were sent since the tasks began to move", n, keys*len(tasks)/partitions, tail)
	if n > tail {
		t.Errorf("%d changelog records were replayed, more than the tail can have", n)
	}
	s.load.Start(rate / 5)
	s.endAfterCrash(crashed...)
}

// TestRollingRestart restarts five instances one after the other, each on its state.
func TestRollingRestart(t *testing.T) { underBoth(t, rollingRestart) }

func rollingRestart(t *testing.T, guarantee string) {
	ids := []string{"a", "b", "c", "d", "e"}
	s := newScene(t, broker, keys, ids, guarantee)
	s.flow(rate / 5)
	s.goOn(rate / 5)
	for _, id := range ids {
		tasks, stopped := s.Status().Instance(id).Active, s.partitionsOf(id)
		sent, since := s.load.Sent(), time.Now()
		s.watch.Reset()
		s.processes[id].Signal(syscall.SIGTERM)
		if code := s.processes[id].Wait(limit); code != 0 {
			t.Fatalf("SIGTERM: exit code %d", code)
		}
		s.start(id)
		harness.Until(t, limit, id+" runs its tasks again", func() bool {
			i := s.Status().Instance(id)
			return i.State == "running" && slices.Equal(i.Active, tasks) && len(s.restored(tasks, id, since)) == len(tasks)
		})
		s.awaitFlow("restart of "+id, time.Now(), stopped, tolerable)
		s.othersFlowed(stopped)
		n := s.replayedBy([]string{id}, tasks, since)
		t.Logf("restart of %s: %d changelog records replayed of %d keys of state", id, n, keys*len(tasks)/partitions)
		if n > s.load.Sent()-sent {
			t.Errorf("%s replayed %d changelog records, more than have come since it was stopped", id, n)
		}
	}
	s.endExact()
}

// TestZombie stops a process until its tasks run elsewhere, and lets it go on.
func TestZombie(t *testing.T) { underBoth(t, zombie) }

func zombie(t *testing.T, guarantee string) {
	s := failover(t, keys, guarantee)
	s.begin("a", "b", "c")
	s.flow(rate)
	s.goOn(rate)
	tasks, stopped := s.Status().Instance("b").Active, s.partitionsOf("b")
	s.watch.Reset()
	since := time.Now()
	s.processes["b"].Signal(syscall.SIGSTOP)
	s.awaitFlow("stopped past its session", since.Add(inFlight), stopped, failoverLimit)
	s.processes["b"].Signal(syscall.SIGCONT)
	s.goOn(rate)
	s.AwaitBalanced("a", "b", "c")
	s.othersFlowed(stopped)
	for _, task := range tasks {
		if len(s.restored([]string{task}, "a", since))+len(s.restored([]string{task}, "c", since)) == 0 {
			t.Errorf("nobody took task %s over", task)
		}
	}
	s.endAfterCrash(stopped...)
}

// TestTwoProcessesUnderOneID starts a second process under the id of one that runs, on another state directory: the
// newer stays, the older ends and says why.
func TestTwoProcessesUnderOneID(t *testing.T) { underBoth(t, twoProcesses) }

func twoProcesses(t *testing.T, guarantee string) {
	s := failover(t, keys, guarantee)
	s.begin("a", "b")
	s.flow(rate / 5)
	s.goOn(rate / 5)
	old, disturbed := s.processes["b"], s.partitionsOf("b")
	s.watch.Reset()
	s.start("b", "--state-dir", t.TempDir())
	ends(t, old, exitSuperseded, "another process runs under the same instance id", "give each instance an id of its own")
	s.AwaitBalanced("a", "b")
	s.goOn(rate)
	if !s.processes["b"].Running() {
		t.Error("the newer process has ended")
	}
	s.othersFlowed(disturbed)
	s.endAfterCrash(disturbed...)
	for _, e := range s.processes["b"].Events() {
		if e.Level == "ERROR" {
			t.Errorf("the newer process says: %s: %s", e.Msg, strings.TrimSpace(e.Text("error")))
		}
	}
}
