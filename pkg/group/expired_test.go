package group

import (
	"errors"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// losing is a handler that asks, while it is told that the lease is lost, whether the lease is over.
type losing struct {
	m     *Membership
	asked []bool
}

func (l *losing) Report() assign.Report                 { return assign.Report{} }
func (*losing) Assigned(string, int32, []assign.TaskID) {}

func (*losing) Revoke(_ func(assign.TaskID) bool, done func()) { done() }

func (l *losing) Plan(string, int32, assign.MemberPlan) {}
func (l *losing) Lost(error)                            { l.asked = append(l.asked, l.m.Expired(time.Now())) }

// Whoever lost the lease drops what it has not written while it is told so: nothing of it may be written meanwhile.
func TestLeaseIsOverWhileItIsBeingLost(t *testing.T) {
	h := &losing{}
	coord, err := NewCoordinator("g")
	if err != nil {
		t.Fatal(err)
	}
	defer coord.Close()
	h.m, err = NewMembership(Config{
		Group: "g", Coordinator: coord, Session: time.Hour, Heartbeat: time.Minute, RebalanceTimeout: time.Hour,
		Subtopologies: []Subtopology{{Topics: []string{"in"}, Partitions: 1}},
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	h.m.mu.clock.admitted(time.Now())
	if h.m.Expired(time.Now()) {
		t.Fatal("a fresh lease is over")
	}
	h.m.lost(errors.New("gone"), true)
	if len(h.asked) != 1 || !h.asked[0] {
		t.Errorf("while it was lost: %v", h.asked)
	}
	if h.m.Expired(time.Now()) {
		t.Error("there is no lease any more, and it is said to be over")
	}
}
