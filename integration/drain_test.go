//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestDrain is the heart of the product: three instances, a million keys of state, 5,000 records a second, one leaves.
// The leaving ones take turns, so the group's leader (the first to start) is among them when there are enough.
func TestDrain(t *testing.T) {
	moves := 1
	if large {
		moves = 60
	}
	s := newScene(t, broker, 1_000_000, []string{"a", "b", "c"})
	s.flow(rate)
	drains(s, []string{"c", "b", "a"}, moves)
	s.endExact()
}

// TestDrainExactlyOnce is the same under exactly once, with fewer keys at the small size.
func TestDrainExactlyOnce(t *testing.T) {
	moves, size := 1, keys
	if large {
		moves, size = 60, 1_000_000
	}
	s := newScene(t, broker, size, []string{"a", "b", "c"}, exactlyOnce)
	s.flow(rate)
	drains(s, []string{"c", "b", "a"}, moves)
	s.endExact()
}

// TestDrainAmongIdle has input in half the partitions only: an idle neighbour must not delay the first fetch of a
// partition that moved.
func TestDrainAmongIdle(t *testing.T) {
	moves := 1
	if large {
		moves = 60
	}
	s := newScene(t, broker, keys, []string{"a", "b", "c"})
	s.flow(rate, 0, 3, 5, 6)
	drains(s, []string{"c", "b", "a"}, moves)
	s.endExact()
}

// drains lets one instance after another leave and come back until so many tasks have moved away, each time one with
// tasks that have input.
func drains(s *scene, leavers []string, moves int) {
	s.t.Helper()
	var all, back []harness.Takeover
	for i := 0; len(all) < moves; i++ {
		id := leavers[i%len(leavers)]
		s.goOn(rate)
		tasks, moved := s.Status().Instance(id).Active, s.partitionsOf(id)
		s.watch.Reset()
		since := time.Now()
		s.Leave("--instance", id, "--wait")
		s.awaitDrained(id)
		harness.Until(s.t, limit, "the others run everything", func() bool { return s.running(len(leavers) - 1) })
		took := s.awaitTakeovers(since, tasks)
		s.movedOnce(took, s.loaded(tasks))
		s.reportPauses(moved)
		all = append(all, took...)

		if len(all) < moves {
			since = time.Now()
			s.start(id)
			s.AwaitBalanced(leavers...)
			back = append(back, s.takeovers(since)...)
		}
	}
	s.goOn(rate)
	s.t.Logf("away from the leaving: %d tasks; %s", len(all), figures(all))
	if len(back) > 0 {
		s.t.Logf("to the joining: %d tasks; %s", len(back), figures(back))
	}
}

// TestLeaderLeaves lets the instance leave that leads the group.
func TestLeaderLeaves(t *testing.T) { underBoth(t, leaderLeaves) }

func leaderLeaves(t *testing.T, guarantee string) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"}, guarantee)
	s.flow(rate)
	tasks := s.Status().Instance("a").Active
	since := time.Now()
	s.Leave("--instance", "a")
	s.awaitDrained("a")
	s.AwaitBalanced("b", "c")
	s.movedOnce(s.awaitTakeovers(since, tasks), tasks)
	s.endExact()
}

// TestTwoLeaveAtOnce marks two of three by a label.
func TestTwoLeaveAtOnce(t *testing.T) { underBoth(t, twoLeaveAtOnce) }

func twoLeaveAtOnce(t *testing.T, guarantee string) {
	s := newScene(t, broker, keys, []string{"c"}, guarantee)
	s.start("a", "--label", "pool=blue")
	s.start("b", "--label", "pool=blue")
	s.AwaitBalanced("a", "b", "c")
	s.flow(rate)
	tasks := append(s.Status().Instance("a").Active, s.Status().Instance("b").Active...)
	since := time.Now()
	s.Leave("--selector", "pool=blue", "--wait")
	s.awaitDrained("a")
	s.awaitDrained("b")
	s.AwaitBalanced("c")
	s.movedOnce(s.awaitTakeovers(since, tasks), tasks)
	s.endExact()
}

// TestCancel takes a leave back in the middle.
func TestCancel(t *testing.T) { underBoth(t, cancel) }

func cancel(t *testing.T, guarantee string) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"}, guarantee, slow)
	s.flow(rate / 5)
	s.Leave("--instance", "c")
	s.awaitMidDrain("c")
	s.Leave("--instance", "c", "--cancel")
	s.AwaitBalanced("a", "b", "c")
	if !s.processes["c"].Running() {
		t.Error("c has ended though its leave was cancelled")
	}
	s.endExact()
}

// TestLeaveNow gives everything up at once: the others restore, nothing is lost.
func TestLeaveNow(t *testing.T) { underBoth(t, leaveNow) }

func leaveNow(t *testing.T, guarantee string) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"}, guarantee)
	s.flow(rate)
	s.Leave("--instance", "c", "--now")
	const undrained = 11
	if code := s.processes["c"].Wait(limit); code != undrained && code != drained {
		t.Errorf("c ended with exit code %d", code)
	}
	s.AwaitBalanced("a", "b")
	s.endExact()
}
