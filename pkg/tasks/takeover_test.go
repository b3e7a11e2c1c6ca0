package tasks

import (
	"errors"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// The owner releases the task and has left the group before the taker sees the token: the taker is told `own`. That
// is a handover all the same. Opening a task with an old token, after a restart for instance, is none.
func TestTakeoverIsMeasuredWhoeverIsFaster(t *testing.T) {
	order := assign.ReleaseID{Generation: 2, Owner: "former"}
	for _, tc := range []struct {
		name  string
		told  func(r *rig)
		wants int
	}{
		{"the token is seen in time", func(r *rig) {
			r.plan(2, takeOf(id(0), 2, "former"))
			leaveToken(r, order)
		}, 1},
		{"the owner leaves first", func(r *rig) {
			r.plan(2, takeOf(id(0), 2, "former"))
			r.awaitPhase(id(0), handover.Taking)
			r.ledger.beforeFetch(func([]TopicPartition) error { return errors.New("busy") })
			leaveToken(r, order)
			r.plan(3, own(id(0)))
			r.ledger.beforeFetch(nil)
		}, 1},
		{"the owner leaves before the plan is there", func(r *rig) {
			r.plan(1, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
			r.awaitPhase(id(0), handover.Learning)
			leaveToken(r, order)
			r.plan(3, own(id(0)))
		}, 1},
		{"an old token", func(r *rig) {
			leaveToken(r, order)
			r.plan(3, own(id(0)))
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, countStreams, 1).start()
			tc.told(r)
			r.awaitPhase(id(0), handover.Running)
			r.send(0, 10, 3)
			r.awaitCounts()
			r.awaitCommitted(0, 10)
			r.events.Lock()
			defer r.events.Unlock()
			if n := len(r.events.takeovers); n != tc.wants {
				t.Fatalf("%d takeovers, want %d", n, tc.wants)
			}
			for _, k := range r.events.takeovers {
				if k.Release != order || k.Gap <= 0 {
					t.Errorf("takeover %+v", k)
				}
			}
		})
	}
}

func leaveToken(r *rig, order assign.ReleaseID) {
	r.ledger.write("in", 0, 0, handover.Metadata{
		Committer: order.Owner,
		Token:     &handover.Token{Release: order, Positions: []int64{0}, LastProcessedUs: time.Now().UnixMicro()},
	})
}
