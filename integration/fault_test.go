//go:build integration

package integration

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestLearnersHostKilled kills the host of a learner in mid-drain: only its own tasks stop, until its session ends.
func TestLearnersHostKilled(t *testing.T) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"}, slow)
	s.flow(rate / 5)
	s.Leave("--instance", "c")
	victim := s.awaitMidDrain("c")[0]
	crashed := s.partitionsOf(victim)
	s.watch.Reset()
	s.processes[victim].Kill()
	s.awaitDrained("c")
	s.AwaitBalanced(slices.DeleteFunc([]string{"a", "b"}, func(id string) bool { return id == victim })...)
	s.load.Stop()
	s.watch.AwaitComplete(s.load, limit, crashed...)
	s.othersFlowed(crashed)
}

// TestLeaverKilled kills the leaving instance in mid-drain.
func TestLeaverKilled(t *testing.T) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"}, slow)
	s.flow(rate / 5)
	s.Leave("--instance", "c")
	s.awaitMidDrain("c")
	crashed := s.partitionsOf("c")
	s.watch.Reset()
	s.processes["c"].Kill()
	s.AwaitBalanced("a", "b")
	s.load.Stop()
	s.watch.AwaitComplete(s.load, limit, crashed...)
	s.othersFlowed(crashed)
}

// TestKafkaRestarted restarts the broker in mid-drain.
func TestKafkaRestarted(t *testing.T) {
	k := harness.OwnKafka(t)
	s := newScene(t, k, keys, []string{"a", "b", "c"}, slow)
	s.flow(rate / 5)
	s.Leave("--instance", "c")
	s.awaitMidDrain("c")
	k.Restart(t)
	s.awaitDrained("c")
	s.AwaitBalanced("a", "b")
	s.load.Stop()
	// A commit whose answer the restart took away is done again from the last acknowledged one.
	s.watch.AwaitComplete(s.load, limit, 0, 1, 2, 3, 4, 5, 6, 7)
}

// TestMemberHangs stops a member, whose tasks do not move, through the round, for less than its session.
func TestMemberHangs(t *testing.T) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"})
	s.flow(rate)
	hung := s.partitionsOf("b")
	s.watch.Reset()
	s.processes["b"].Signal(syscall.SIGSTOP)
	s.Leave("--instance", "c")
	time.Sleep(5 * time.Second)
	s.processes["b"].Signal(syscall.SIGCONT)
	s.awaitDrained("c")
	s.AwaitBalanced("a", "b")
	s.load.Stop()
	s.watch.AwaitExact(s.load, limit)
	s.othersFlowed(hung)
}

// TestMemberHangsTooLong stops a member until the group has given it up: its tasks run elsewhere, and when it wakes
// it finds out before it does harm.
func TestMemberHangsTooLong(t *testing.T) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"})
	s.flow(rate)
	hung := s.partitionsOf("b")
	s.watch.Reset()
	s.processes["b"].Signal(syscall.SIGSTOP)
	s.Leave("--instance", "c")
	s.awaitDrained("c")
	s.AwaitBalanced("a")
	s.processes["b"].Signal(syscall.SIGCONT)
	s.AwaitBalanced("a", "b")
	s.load.Stop()
	s.watch.AwaitComplete(s.load, limit, hung...)
	s.othersFlowed(hung)
}
