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

// bluePool is the label of all instances that are not given another one.
const bluePool = "labels: {pool: blue}"

// beginSwap gives the command that swaps hosts.
func (s *scene) beginSwap(name string) *harness.Process {
	return s.Begin(name, "swap", "--from", "pool=blue", "--to", "pool=green", "-o", "json")
}

// awaitPhase waits until a swap is so far.
func (s *scene) awaitPhase(swap *harness.Process, phase string) {
	s.t.Helper()
	harness.Until(s.t, limit, "the swap is "+phase, func() bool {
		return strings.Contains(swap.Output(), `"phase":"`+phase+`"`)
	})
}

// endsWith waits for the end of a swap.
func (s *scene) endsWith(swap *harness.Process, code int, want string) {
	s.t.Helper()
	if got := swap.Wait(limit); got != code || !strings.Contains(swap.Output(), want) {
		s.t.Fatalf("%s ended with exit code %d, want %d with %q: %s", swap.Name, got, code, want, swap.Output())
	}
}

// movesAfter are the handovers that a later rebalance than that of the generation ordered. (When they began to process says less: a task that
// moved before has its first record after its handover, whenever that comes.)
func (s *scene) movesAfter(generation int32) []harness.Takeover {
	return slices.DeleteFunc(s.takeovers(time.Time{}), func(h harness.Takeover) bool { return h.Generation <= generation })
}

// onlyTo fails the test if a task was handed over to another instance than these.
func (s *scene) onlyTo(took []harness.Takeover, ids ...string) {
	s.t.Helper()
	for _, h := range took {
		if !slices.Contains(ids, h.Instance) {
			s.t.Errorf("task %s was handed over to %s, an instance of the old pool", h.Task, h.Instance)
		}
	}
}

func (s *scene) startGreen(ids ...string) {
	for _, id := range ids {
		s.start(id, "--label", "pool=green")
	}
}

// TestSwapHosts goes from two hosts to two others under load. The command is given first, and waits for them. Each task is handed over
// exactly once, be it while the new ones take their share or after the old ones are marked, and the counts are exact.
func TestSwapHosts(t *testing.T) { underBoth(t, swapHosts) }

func swapHosts(t *testing.T, guarantee string) {
	s := newScene(t, broker, keys, []string{"a", "b"}, guarantee, bluePool)
	s.flow(rate)
	before := s.Status().Generation
	swap := s.beginSwap("swap")
	s.awaitPhase(swap, "waiting")
	s.startGreen("c", "d")
	s.endsWith(swap, 0, `"phase":"ended"`)
	s.awaitDrained("a")
	s.awaitDrained("b")
	s.AwaitBalanced("c", "d")
	var took []harness.Takeover
	harness.Until(t, limit, "the new hosts have processed records of all tasks", func() bool {
		took = s.movesAfter(before)
		return len(took) >= partitions
	})
	s.movedOnce(took, s.input)
	s.onlyTo(took, "c", "d")
	s.endExact()
}

// TestSwapGoesOn has the command interrupted and given again, and the oldest instance, which leads the group and is leaving, restarted under its
// id in mid-swap.
func TestSwapGoesOn(t *testing.T) { underBoth(t, swapGoesOn) }

func swapGoesOn(t *testing.T, guarantee string) {
	s := newScene(t, broker, keys, []string{"a", "b"}, guarantee, bluePool, slow)
	s.flow(rate / 5)
	before := s.Status().Generation
	s.startGreen("c", "d")
	swap := s.beginSwap("swap")
	s.awaitPhase(swap, "draining")
	swap.Signal(syscall.SIGINT)
	const interrupted = 130
	s.endsWith(swap, interrupted, "the swap goes on without this command")

	s.awaitMidDrain("a")
	s.processes["a"].Signal(syscall.SIGTERM)
	if code := s.processes["a"].Wait(limit); code != 0 {
		t.Fatalf("SIGTERM: exit code %d", code)
	}
	s.start("a")
	again := s.beginSwap("swap-again")
	s.endsWith(again, 0, `"phase":"ended"`)
	if strings.Contains(again.Output(), `"phase":"waiting"`) {
		t.Errorf("given again, the swap waited: %s", again.Output())
	}
	s.awaitDrained("a")
	s.awaitDrained("b")
	if !strings.Contains(s.processes["a"].Output(), "going on with the leave that a restart interrupted") {
		t.Error("a did not go on with its leave")
	}
	s.AwaitBalanced("c", "d")
	took := s.movesAfter(before)
	s.movedOnce(took, nil) // one that was at rest while a restarted needed no handover
	s.onlyTo(took, "c", "d")
	s.endExact()
}

// TestSwapCancelled takes a swap back in the middle, from a third machine: the command ends, and nobody leaves.
func TestSwapCancelled(t *testing.T) {
	s := newScene(t, broker, keys, []string{"a", "b"}, bluePool, slow)
	s.flow(rate / 5)
	s.startGreen("c", "d")
	swap := s.beginSwap("swap")
	s.awaitPhase(swap, "draining")
	s.awaitMidDrain("a")
	s.endsWith(s.Begin("cancel", "swap", "--from", "pool=blue", "--cancel"), 0, "a: cancelled")
	const cancelled = 15
	s.endsWith(swap, cancelled, "the leave was cancelled")
	s.AwaitBalanced("a", "b", "c", "d")
	s.endExact()
}
