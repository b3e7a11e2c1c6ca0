package tasks

import (
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// One plan takes a release back, so that its task is opened anew and the transaction is aborted, and orders another
// one. The other task was dropped with the transaction: it is released at what is committed, not at what it was
// once opened at.
func TestAbortByAPlanThatOrdersARelease(t *testing.T) {
	r := newTxnRig(t, countStreams, 2, byHand).start()
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	r.send(1, 5, 1)
	r.await("the work is committed", func() bool { r.commit(); return r.committedOffset(1).Offset == 5 })

	r.offsets.set(func() { r.offsets.refuse = func(l handover.Lease) bool { return l.Generation == 2 } })
	r.send(0, 3, 1)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 8 })
	release0 := releaseOf(id(0), 2)
	release0.Own = []assign.TaskID{id(1)}
	r.plan(2, release0)
	r.awaitPhaseOfTransaction(txnRefused)

	release1 := releaseOf(id(1), 3)
	release1.Own = []assign.TaskID{id(0)}
	rounds := r.group.rounds.Load()
	r.plan(3, release1)
	generation := int32(3)
	r.await("the release", func() bool {
		if now := r.group.rounds.Load(); now > rounds {
			generation, rounds = generation+1, now
			r.plan(generation, release1)
		}
		return r.token(1) != nil
	})
	if got := r.committedOffset(1).Offset; got != 5 {
		t.Errorf("released at %d, committed before was 5", got)
	}
	r.await("the other task goes on", func() bool { r.commit(); return r.committedOffset(0).Offset == 3 })
	r.awaitExactlyOnce()
}
