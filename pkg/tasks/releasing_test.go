package tasks

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func TestManagerRunsWhatItOwns(t *testing.T) {
	r := newRig(t, countStreams, 2).start()
	r.send(0, 100, 7)
	r.plan(1, own(id(0), id(1)))
	r.send(1, 100, 7)
	r.awaitCounts()
	r.awaitCommitted(0, 100)
	r.awaitCommitted(1, 100)
	r.end()
	if n := len(r.cfg.Engine.Local()); n != 2 {
		t.Fatalf("state of %d tasks on disk", n)
	}
}

// The answer to a release comes when the group was lost and has given the task back. It must not set anything
// going for what the manager has long forgotten.
func TestLateAnswerToAReleaseOpensNothing(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 10, 1)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	answer := make(chan struct{})
	r.ledger.decide(func(c commitCall) (handover.Outcome, bool) {
		if c.token() != nil {
			<-answer
		}
		return handover.Acknowledged, c.token() == nil
	})
	r.plan(2, releaseOf(id(0), 2))
	r.await("the release is sent", func() bool { return len(r.ledger.releases()) == 1 })
	var forgotten, s *slot
	r.inside(func() { forgotten = r.m.slots[id(0)] })
	r.m.Lost(nil)
	r.await("the task is forgotten", func() bool {
		var n int
		r.inside(func() { n = len(r.m.slots) })
		return n == 0
	})
	// Fetches are held, so that the task is being opened when the answer comes.
	fetch := make(chan struct{})
	r.ledger.beforeFetch(func([]TopicPartition) error { <-fetch; return nil })
	r.plan(3, own(id(0)))
	r.inside(func() { s = r.m.slots[id(0)] })
	close(answer)
	r.await("the answer is heard", func() bool { return r.m.Totals().Releases == 1 })
	close(fetch)
	r.awaitPhase(id(0), handover.Running)
	r.inside(func() {
		if r.m.slots[id(0)] != s || s.mode != running || forgotten.task != nil {
			t.Error("the task was opened for a slot that was forgotten")
		}
	})
	r.send(0, 10, 1)
	r.awaitCommitted(0, 20)
}

// A task that is told to be released at the moment at which its state is ready is released once: a second
// commit of the same release could arrive after the first ones of the taker, and set the offset back.
func TestReleaseOrderedDuringTheActivationIsSentOnce(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.ledger.write("in", 0, 0, handover.Metadata{Committer: "other"})
	activate := r.holdActivation(id(0), own(id(0)))
	ends := make(chan struct{})
	var begun atomic.Int64
	r.logs.intercept(func(string, []TopicPartition) error { begun.Add(1); <-ends; return nil })
	r.plan(2, releaseOf(id(0), 2))
	r.awaitPhase(id(0), handover.Releasing)
	activate()
	r.awaitMode(id(0), restored)
	close(ends)
	r.awaitPhase(id(0), handover.Released)
	r.awaitMode(id(0), absent)
	if n := len(r.ledger.releases()); n != 1 || begun.Load() != 1 {
		t.Fatalf("the release was begun %d times and committed %d times", begun.Load(), n)
	}
}

// holdActivation sends a plan under generation 1 that opens the task, and returns when nothing but the call of
// the function returned is missing for it to be activated.
func (r *rig) holdActivation(t assign.TaskID, p assign.MemberPlan) (activate func()) {
	r.t.Helper()
	fetch, hold := make(chan struct{}), make(chan struct{})
	var asked atomic.Bool
	r.ledger.beforeFetch(func([]TopicPartition) error { <-fetch; return nil })
	r.logs.intercept(func(what string, parts []TopicPartition) error {
		if what == "ends" && parts[0].Partition == t.Partition {
			asked.Store(true)
		}
		return nil
	})
	r.plan(1, p)
	r.inside(func() { r.m.slots[t].task.box.post(func() { <-hold }) })
	close(fetch)
	r.await("the changelog's end is asked for", asked.Load)
	r.await("the task is told to restore", func() (told bool) {
		r.inside(func() { told = r.m.machine.MayOpen(t) })
		return told
	})
	return func() { close(hold) }
}

// A task that is not open here is to be released, and nobody says where its changelog ends. No round helps with
// that: it is asked again.
func TestReleaseThatWaitsForTheChangelogsEnd(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.ledger.write("in", 0, 7, handover.Metadata{Committer: "other"})
	away := errors.New("nobody answers")
	var asked atomic.Int64
	r.logs.intercept(func(string, []TopicPartition) error { asked.Add(1); return away })
	r.plan(1, own(id(0)))
	r.await("the task cannot be opened", func() bool { return asked.Load() > 0 })
	r.plan(2, releaseOf(id(0), 2))
	r.awaitPhase(id(0), handover.Releasing)
	rounds, before := r.group.rounds.Load(), asked.Load()
	r.await("it is tried again", func() bool {
		st := r.statusOf(0)
		return asked.Load() >= before+2 && errors.Is(st.Err, away) && st.Phase == handover.Releasing
	})
	if n := r.group.rounds.Load(); n != rounds {
		t.Errorf("%d rounds are forced", n-rounds)
	}
	r.logs.intercept(nil)
	r.awaitPhase(id(0), handover.Released)
	if rel := r.ledger.releases(); len(rel) != 1 || rel[0].offsets[0].Offset != 7 {
		t.Fatalf("releases %+v", rel)
	}
}

// A release that is refused for a reason of the task's own does not have the group make one round after the other.
func TestReleaseThatIsRefused(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 10, 1)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	gone := errors.New("topic is gone")
	r.ledger.refusePartition(TopicPartition{"in", 0}, gone)
	wait := retryFirst
	for generation := int32(2); generation < 4; generation++ {
		rounds, begun := r.group.rounds.Load(), time.Now()
		r.plan(generation, releaseOf(id(0), 2))
		r.await("a round is asked for", func() bool { return r.group.rounds.Load() > rounds })
		if d := time.Since(begun); d < wait {
			t.Errorf("the round after refusal %d is asked for after %v, want %v or more", generation-1, d, wait)
		}
		if st := r.statusOf(0); !errors.Is(st.Err, gone) {
			t.Errorf("the status of the task says %v", st.Err)
		}
		wait *= 2
	}
	r.ledger.refusePartition(TopicPartition{}, nil)
	r.plan(4, releaseOf(id(0), 2))
	r.awaitPhase(id(0), handover.Released)
	if off := r.ledger.offset("in", 0); off != 10 {
		t.Errorf("released at %d, want 10", off)
	}
}
