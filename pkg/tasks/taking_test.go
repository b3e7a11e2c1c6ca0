package tasks

import (
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func TestTakerStartsWhereTheReleaseEnds(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 30, 3)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 30)
	r.plan(2, releaseOf(id(0), 2))
	r.awaitPhase(id(0), handover.Released)
	r.send(0, 30, 3)
	r.plan(3, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
	r.await("the learner is ready", func() bool {
		var st handover.TaskState
		r.inside(func() { st = r.m.machine.Task(id(0)) })
		return st.Ready
	})
	r.plan(4, takeOf(id(0), 2, "me"))
	r.awaitCounts()
	r.awaitCommitted(0, 60)
	r.await("the takeover is measured", func() bool { return r.m.Totals().Takeovers == 1 })
}

// The group is lost while the task is a learner here. Losing it ends the producer of then, under which the task
// must not write when it is taken later.
func TestLearnerThatOutlivedTheGroupTakesOver(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.plan(1, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
	r.await("the learner is ready", func() bool { return len(r.m.Status().Tasks) == 1 && r.m.Status().Tasks[0].Ready })
	r.m.Lost(nil)
	r.send(0, 10, 2)
	r.plan(2, own(id(0)))
	r.awaitCommitted(0, 10)
	r.awaitCounts()
	if n := r.m.Totals().Failures; n != 0 {
		t.Fatalf("the task failed %d times: %v", n, r.events.failed[0].Err)
	}
}
