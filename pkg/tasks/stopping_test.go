package tasks

import (
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Stopping an instance whose task is just being released still makes the release.
func TestStopFinishesAReleaseThatHasBegun(t *testing.T) {
	r := newRig(t, countStreams, 1)
	r.m.patience = time.Minute
	r.start()
	r.send(0, 10, 2)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	r.wire.shut()
	r.send(0, 10, 2)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 20 })
	r.plan(2, releaseOf(id(0), 2))
	r.awaitMode(id(0), stopping)
	r.stop()
	r.await("the instance stops", func() bool { return r.m.Status().Stopping })
	r.wire.open()
	r.end()
	rel := r.ledger.releases()
	if len(rel) != 1 || rel[0].offsets[0].Offset != 20 {
		t.Fatalf("releases %+v, want one at offset 20", rel)
	}
	r.awaitCounts()
	if l := r.cfg.Engine.Local(); len(l) != 1 || l[0].Position != rel[0].token().Positions[0] {
		t.Fatalf("local state %+v, released with %v: what was committed is not in the store", l, rel[0].token().Positions)
	}
}

// A task whose state is ready only when the instance stops does not begin to process.
func TestStopBeginsNothing(t *testing.T) {
	r := newRig(t, countStreams, 2)
	r.m.patience = time.Minute
	r.start()
	r.send(0, 10, 2)
	r.send(1, 10, 2)
	activate := r.holdActivation(id(0), own(id(0), id(1)))
	r.awaitCommitted(1, 10)
	r.wire.shut()
	r.send(1, 10, 2)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 20 })
	r.stop()
	r.await("the instance stops", func() bool { return r.m.Status().Stopping })
	activate()
	r.await("the task is activated", func() bool {
		r.events.Lock()
		defer r.events.Unlock()
		return len(r.events.restored) == 2
	})
	md, _ := r.look(id(0))
	r.wire.open()
	r.end()
	if md != restored {
		t.Errorf("the task is in mode %d while the instance stops", md)
	}
	if _, n := r.counts("out"); n != 20 || r.ledger.offset("in", 0) != 0 || r.ledger.offset("in", 1) != 20 {
		t.Fatalf("%d records written, offsets %d and %d committed", n, r.ledger.offset("in", 0), r.ledger.offset("in", 1))
	}
}

// A plan that comes while the instance stops is followed as far as releases go: the taker need not wait for
// the end of the session.
func TestPlanDuringTheStopReleases(t *testing.T) {
	r := newRig(t, countStreams, 2)
	r.m.patience = time.Minute
	r.start()
	r.send(0, 10, 2)
	r.send(1, 10, 2)
	r.plan(1, own(id(0), id(1)))
	r.awaitCommitted(0, 10)
	r.awaitCommitted(1, 10)
	r.wire.shut()
	r.send(0, 5, 2)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 25 })
	r.stop()
	r.await("task 1 is stopped", func() bool { md, _ := r.look(id(1)); return md == halted })
	p := releaseOf(id(0), 2)
	p.Release = append(p.Release, releaseOf(id(1), 2).Release...)
	r.plan(2, p)
	r.wire.open()
	r.end()
	got := map[int32]int64{}
	for _, c := range r.ledger.releases() {
		if c.lease.Generation != 2 || len(c.offsets) != 1 {
			t.Errorf("release %+v", c)
		}
		got[c.offsets[0].Partition] = c.offsets[0].Offset
	}
	if got[0] != 15 || got[1] != 10 || len(r.ledger.releases()) != 2 {
		t.Fatalf("released %v, want 15 and 10", got)
	}
}

// Without any answer the instance still ends, and keeps nothing that was not committed.
func TestStopWithoutAnswersDropsWhatIsNotCommitted(t *testing.T) {
	r := newRig(t, countStreams, 1)
	r.m.patience = 0
	r.start()
	r.send(0, 10, 2)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	r.await("the changes are applied", func() bool { return r.localPosition(id(0)) > 0 })
	before := r.localPosition(id(0))
	r.ledger.decide(func(commitCall) (handover.Outcome, bool) { return handover.Unknown, false })
	r.send(0, 10, 2)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 20 })
	r.end()
	if l := r.cfg.Engine.Local(); len(l) != 1 || l[0].Position != before {
		t.Fatalf("local state %+v, want position %d", l, before)
	}
}

// localPosition is the sum of the positions that an open task's store holds; -1: it is not open.
func (r *rig) localPosition(t assign.TaskID) int64 {
	r.t.Helper()
	out := make(chan int64, 1)
	r.inside(func() {
		s := r.m.slots[t]
		if s == nil || s.task == nil || s.closing {
			out <- -1
			return
		}
		task := s.task
		task.box.post(func() {
			n := int64(-1)
			if task.db != nil {
				n = 0
				for _, p := range task.db.Checkpoint() {
					n += p
				}
			}
			out <- n
		})
	})
	return <-out
}

// The group is lost while the last records of a stopping instance are on their way. Others may run its tasks now:
// nothing more is written.
func TestGroupIsLostDuringTheStop(t *testing.T) {
	r := newRig(t, countStreams, 1)
	r.m.patience = time.Minute
	r.start()
	r.send(0, 10, 2)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	r.wire.shut()
	r.send(0, 10, 2)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 20 })
	r.stop()
	r.awaitMode(id(0), stopping)
	r.m.Lost(nil)
	r.end()
	r.wire.open()
	if _, n := r.counts("out"); n != 10 {
		t.Errorf("%d records written, want the 10 from before", n)
	}
	if l := r.cfg.Engine.Local(); len(l) != 1 || r.ledger.offset("in", 0) != 10 {
		t.Errorf("local state %+v, offset %d", l, r.ledger.offset("in", 0))
	}
}
