package tasks

import (
	"slices"
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// The leader may run another file. What this instance cannot run it must not claim: the task would stand still
// as long as this instance is there, and a leave would wait for ever to hand it over.
func TestUnknownTasksAreNotClaimed(t *testing.T) {
	r := newRig(t, countStreams, 2).start()
	unknown := []assign.TaskID{{Subtopology: 1}, {Partition: 2}, {Subtopology: -1}, {Partition: -1}}
	id := assign.ReleaseID{Generation: 1, Owner: "me"}
	r.plan(1, assign.MemberPlan{
		Own: []assign.TaskID{{}, unknown[0], unknown[1]}, Learn: []assign.TaskID{{Partition: 1}, unknown[2]},
		Standby: []assign.TaskID{unknown[3]}, Take: []assign.Handover{{Task: assign.TaskID{Subtopology: 2}, Release: id}},
		Release: []assign.Handover{{Task: assign.TaskID{Subtopology: 3}, Release: id}},
	})
	r.awaitPhase(assign.TaskID{}, handover.Running)
	rep := r.m.Report()
	if len(rep.Owned) != 1 || len(rep.Learning) != 1 || len(rep.Standby)+len(rep.Taking)+len(rep.Releasing) > 0 {
		t.Errorf("claims %+v", rep)
	}
	if st := r.m.Status(); !slices.Equal(st.Unknown, unknown[:2]) || st.Held != 1 {
		t.Errorf("status %+v", st)
	}
	r.m.SetLeaving(true, 0)
	r.m.Report()
	r.plan(2, assign.MemberPlan{Release: []assign.Handover{
		{Task: assign.TaskID{}, Release: id}, {Task: unknown[0], Release: id}, {Task: unknown[1], Release: id},
	}})
	r.await("the instance is drained", func() bool { return r.m.Status().Drained })
	if st := r.m.Status(); len(st.Unknown) > 0 {
		t.Errorf("status %+v", st)
	}
}
