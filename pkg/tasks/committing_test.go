package tasks

import (
	"testing"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// A commit gets no answer while a join is under way that makes no round. Only a round lets the task commit again, so
// one is asked for as soon as the join has ended.
func TestUnansweredCommitDuringAJoinWithoutARound(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	r.m.Report()
	r.ledger.decide(func(c commitCall) (handover.Outcome, bool) { return handover.Unknown, false })
	r.send(0, 10, 2)
	r.await("the commit is not answered", func() bool { return r.m.Totals().CommitsUnanswered == 1 })
	before := r.group.rounds.Load()
	r.plan(1, own(id(0)))
	r.await("a round is asked for", func() bool { return r.group.rounds.Load() > before })
	r.ledger.decide(nil)
	r.m.Report()
	r.plan(2, own(id(0)))
	r.awaitCommitted(0, 10)
	r.awaitCounts()
}
