package tasks

import (
	"errors"
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

// The broker takes the offsets of some tasks and refuses those of another, whose topic is gone, say. Each task has
// its own outcome: the others' is no reason for a new round, nor to keep what they have done in memory.
func TestRefusedPartitionConcernsItsTaskOnly(t *testing.T) {
	r := newRig(t, countStreams, 2).start()
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	rounds := r.group.rounds.Load()
	r.ledger.refusePartition(TopicPartition{"in", 0}, errors.New("topic is gone"))
	r.send(0, 10, 2)
	r.await("the refusal is told", func() bool { st := r.statusOf(0); return st.Err != nil && st.Failures > 2 })
	r.send(1, 10, 2)
	r.awaitCommitted(1, 10)
	r.await("its changes are in the store", func() bool { return r.localPosition(id(1)) > 0 })
	if st := r.statusOf(1); st.Err != nil || r.localPosition(id(0)) != 0 || r.ledger.offset("in", 0) > 0 {
		t.Errorf("the other task: %+v", st)
	}
	if n := r.group.rounds.Load(); n != rounds {
		t.Errorf("%d rounds are forced", n-rounds)
	}
	r.ledger.refusePartition(TopicPartition{}, nil)
	r.awaitCommitted(0, 10)
	r.await("nothing is wrong any more", func() bool { return r.statusOf(0).Err == nil })
	r.awaitCounts()
}
