package tasks

import (
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// readsAhead orders the task to be taken over, at an offset that its owner has committed before the release.
func (r *rig) readsAhead(committed int64) {
	r.t.Helper()
	r.ledger.write("in", 0, committed, handover.Metadata{Committer: "former"})
	r.plan(1, takeOf(id(0), 1, "former"))
	r.await("the manager hears what is committed", func() bool {
		r.m.opener.mu.Lock()
		defer r.m.opener.mu.Unlock()
		l, ok := r.m.opener.wanted[id(0)]
		return ok && l.ahead == nil
	})
}

func (r *rig) awaitAhead() {
	r.t.Helper()
	r.await("records wait for the token", func() (waits bool) {
		r.inside(func() { waits = !r.m.slots[id(0)].task.inbox.empty() })
		return waits
	})
}

func (r *rig) release(offset int64) {
	r.ledger.write("in", 0, offset, handover.Metadata{
		Committer: "former", Token: &handover.Token{Release: assign.ReleaseID{Generation: 1, Owner: "former"}, Positions: []int64{0}},
	})
}

// What was read ahead is processed from the token on, and nothing of it before.
func TestInputIsReadAheadOfTheToken(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 30, 3)
	r.readsAhead(10)
	r.awaitAhead()
	if n := r.m.Totals().RecordsIn; n != 0 {
		t.Errorf("%d records are processed before the token is there", n)
	}
	r.release(25)
	r.awaitCommitted(0, 30)
	if _, n := r.counts("out"); n != 5 {
		t.Errorf("%d records are processed, want the 5 after the token", n)
	}
	r.send(0, 7, 3)
	r.awaitCommitted(0, 37)
	if _, n := r.counts("out"); n != 12 {
		t.Errorf("%d records are processed, want 12", n)
	}
}

// The owner goes on while its records are deleted from the topic. A reader that was behind is no failure.
func TestReadAheadOfWhatIsDeleted(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newRig(t, countStreams, 1).start()
		r.send(0, 30, 3)
		if err := r.cluster.DeleteRecords("in", 0, 20); err != nil {
			t.Fatal(err)
		}
		r.readsAhead(10)
		if late { // the failure is told before the token is there
			r.await("the reading has ended", func() (ended bool) {
				r.inside(func() { ended = !r.m.slots[id(0)].ahead })
				return ended
			})
		}
		r.release(25)
		r.awaitCommitted(0, 30)
		if _, n := r.counts("out"); n != 5 {
			t.Errorf("%d records are processed, want 5", n)
		}
		if n := r.m.Totals().Failures; n != 0 {
			t.Errorf("%d failures, the first: %v", n, r.events.failed[0].Err)
		}
		r.end()
	}
}

// The order is taken back while input is read ahead, and the task is owned later.
func TestReadAheadIsTakenBack(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 30, 3)
	r.readsAhead(10)
	r.awaitAhead()
	r.plan(2, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
	r.awaitPhase(id(0), handover.Learning)
	r.inside(func() {
		if r.m.slots[id(0)].ahead {
			t.Error("a learner reads input")
		}
	})
	r.awaitNoBacklog()
	r.send(0, 10, 3)
	r.ledger.write("in", 0, 20, handover.Metadata{Committer: "former"})
	r.plan(3, own(id(0)))
	r.awaitCommitted(0, 40)
	if _, n := r.counts("out"); n != 20 {
		t.Errorf("%d records are processed, want the 20 after the committed offset", n)
	}
}

// What was read ahead for a task that is then closed keeps nobody back.
func TestReadAheadOfATaskThatGoes(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 30, 3)
	r.readsAhead(10)
	r.awaitAhead()
	r.plan(2, assign.MemberPlan{})
	r.awaitPhase(id(0), handover.Idle)
	r.awaitNoBacklog()
}

// awaitNoBacklog waits until nothing counts as waiting in inboxes.
func (r *rig) awaitNoBacklog() {
	r.t.Helper()
	r.await("no input waits", func() bool { return r.m.env.input.backlog.bytes.Load() == 0 })
}
