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

// The former owner runs a version of the file with other stores, while it is rolled out: the positions in its token are not those
// of the stores here.
func TestReleasedWithOtherStores(t *testing.T) {
	order := assign.ReleaseID{Generation: 2, Owner: "former"}
	for name, tok := range map[string]handover.Token{
		"more":           {Positions: []int64{1 << 40, 1 << 40}, Stores: 1},
		"others":         {Positions: []int64{1 << 40}, Stores: 1},
		"none":           {},
		"more, not said": {Positions: []int64{1 << 40, 1 << 40}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, countStreams, 1).start()
			r.plan(1, own(id(0)))
			r.awaitPhase(id(0), handover.Running)
			r.send(0, 10, 3)
			r.awaitCounts()
			r.awaitCommitted(0, 10)
			r.plan(2, takeOf(id(0), 2, "former"))
			r.awaitPhase(id(0), handover.Taking)
			tok.Release, tok.LastProcessedUs = order, time.Now().UnixMicro()
			r.ledger.write("in", 0, 10, handover.Metadata{Committer: order.Owner, Token: &tok})
			r.awaitPhase(id(0), handover.Running)
			r.send(0, 10, 3)
			r.awaitCounts()
			r.awaitCommitted(0, 20)
			r.events.Lock()
			defer r.events.Unlock()
			if n := len(r.events.takeovers); n != 1 {
				t.Errorf("%d takeovers, want 1", n)
			}
		})
	}
}
