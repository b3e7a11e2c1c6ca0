package group

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// lossWatch notes what the membership counts at the moment of a loss.
type lossWatch struct {
	m  *Membership
	at []int
}

func (w *lossWatch) Report() assign.Report                 { return assign.Report{} }
func (*lossWatch) Assigned(string, int32, []assign.TaskID) {}

func (*lossWatch) Revoke(_ func(assign.TaskID) bool, done func()) { done() }

func (w *lossWatch) Plan(string, int32, assign.MemberPlan) {}
func (w *lossWatch) Lost(error)                            { w.at = append(w.at, w.m.Losses()) }

// A loss counts before the handler hears of it, so that what the handler makes anew belongs to the time after it;
// only the loss of a lease counts.
func TestLossesCountBeforeTheyAreTold(t *testing.T) {
	w := &lossWatch{}
	w.m = &Membership{cfg: Config{Logger: slog.New(slog.DiscardHandler)}, handler: w}
	w.m.lost(errors.New("no lease yet"), true)
	if w.m.Losses() != 0 || len(w.at) != 0 {
		t.Fatalf("%d losses without a lease, told %v", w.m.Losses(), w.at)
	}
	for want := 1; want <= 2; want++ {
		w.m.mu.clock.member = true
		w.m.lost(errors.New("gone"), true)
		if w.m.Losses() != want || len(w.at) != want || w.at[want-1] != want {
			t.Fatalf("%d losses, told %v, want %d", w.m.Losses(), w.at, want)
		}
	}
}
