package tasks

import (
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Hundreds of tasks are opened, run, released, learned and taken at once.
func TestHundredsOfTasks(t *testing.T) {
	const n = 300
	if testing.Short() {
		t.Skip("opens 300 databases")
	}
	r := newRig(t, countStreams, n)
	r.m.patience = time.Minute
	r.start()
	var p, q assign.MemberPlan
	for i := range int32(n) {
		if i%50 == 0 {
			r.send(i, 20, 2)
		}
		p.Own = append(p.Own, id(i))
		q.Release = append(q.Release, releaseOf(id(i), 2).Release...)
	}
	phases := func(want handover.Phase) func() bool {
		return func() (all bool) {
			r.inside(func() {
				all = true
				for i := range int32(n) {
					all = all && r.m.machine.Task(id(i)).Phase == want
				}
			})
			return all
		}
	}
	r.plan(1, p)
	r.await("all tasks run", phases(handover.Running))
	r.awaitCounts()
	r.plan(2, q)
	r.await("all tasks are released", phases(handover.Released))
	r.plan(3, assign.MemberPlan{Learn: p.Own})
	r.await("all learners are ready", func() bool {
		ready := 0
		for _, ts := range r.m.Status().Tasks {
			if ts.Ready {
				ready++
			}
		}
		return ready == n
	})
	for i := range int32(n) {
		if i%50 == 0 {
			r.send(i, 20, 2)
		}
	}
	q.Take, q.Release = q.Release, nil
	r.plan(4, q)
	r.await("all tasks run again", phases(handover.Running))
	r.awaitCounts()
	r.end()
	if f := r.m.Totals().Failures; f != 0 {
		t.Errorf("%d failures: %v", f, r.events.failed[0].Err)
	}
	if l := len(r.cfg.Engine.Local()); l != n/50 {
		t.Errorf("state of %d tasks on disk, want that of the %d that had input", l, n/50)
	}
}
