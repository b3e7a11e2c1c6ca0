package tasks

import (
	"context"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// lateStreams count like countStreams, and send the counts on at commits only, through a second aggregate that does so too.
const lateStreams = `
- name: s
  from: {topic: in}
  steps:
    - count: {store: counts, emit: commit}
    - max: {store: most, emit: commit}
    - to: {topic: out, value: int}
`

// lateRig is a rig of either guarantee whose test commits by hand.
type lateRig struct {
	*rig
	txn *txnRig // under exactly once
}

func eachGuarantee(t *testing.T, test func(*testing.T, *lateRig)) {
	t.Run("at least once", func(t *testing.T) {
		test(t, &lateRig{rig: newRig(t, lateStreams, 2, byHand).start()})
	})
	t.Run("exactly once", func(t *testing.T) {
		r := newTxnRig(t, lateStreams, 2, byHand).start()
		test(t, &lateRig{rig: r.rig, txn: r})
	})
}

func (r *lateRig) committed() int64 {
	if r.txn != nil {
		return r.txn.committedOffset(0).Offset
	}
	return r.ledger.offset("in", 0)
}

// commitUntil commits, again and again if need be, until an offset of partition 0 is committed.
func (r *lateRig) commitUntil(offset int64) {
	r.t.Helper()
	r.await("the commit is made", func() bool { r.inside(r.m.commit); return r.committed() == offset })
}

func (r *lateRig) awaitProcessed(records int64) {
	r.t.Helper()
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == records })
}

// wantOutput wants the counts of all that was sent as the last ones, and a number of records.
func (r *lateRig) wantOutput(records int) {
	r.t.Helper()
	last, n := r.counts("out")
	if !maps.Equal(last, r.sent) || n != records {
		r.t.Errorf("%d records of output, the last of them %v; want %d and %v", n, last, records, r.sent)
	}
}

func TestResultsWaitForTheCommit(t *testing.T) {
	eachGuarantee(t, func(t *testing.T, r *lateRig) {
		r.plan(1, own(id(0)))
		r.awaitPhase(id(0), handover.Running)
		r.send(0, 100, 5)
		r.awaitProcessed(100)
		if _, n := r.counts("out"); n != 0 {
			t.Errorf("%d records of output before the commit", n)
		}
		r.commitUntil(100)
		r.wantOutput(5)
		r.send(0, 100, 2)
		r.awaitProcessed(200)
		r.commitUntil(200)
		r.wantOutput(7)
		for _, store := range []string{"counts", "most"} {
			if last, n := r.counts("app-" + store + "-changelog"); !maps.Equal(last, r.sent) || n != 7 {
				t.Errorf("changelog of %s: %d records, the last of them %v; want 7 and %v", store, n, last, r.sent)
			}
		}
	})
}

// What waits goes out with a release, and with a stop.
func TestResultsGoOutBeforeATaskIsGivenAway(t *testing.T) {
	for name, give := range map[string]func(*lateRig){
		"release": func(r *lateRig) {
			r.plan(2, releaseOf(id(0), 2))
			r.awaitPhase(id(0), handover.Released)
		},
		"stop": func(r *lateRig) { r.end() },
	} {
		t.Run(name, func(t *testing.T) {
			eachGuarantee(t, func(t *testing.T, r *lateRig) {
				r.plan(1, own(id(0)))
				r.awaitPhase(id(0), handover.Running)
				r.send(0, 100, 5)
				r.awaitProcessed(100)
				give(r)
				if got := r.committed(); got != 100 {
					t.Errorf("offset %d is committed, want 100", got)
				}
				r.wantOutput(5)
			})
		})
	}
}

// Work that is dropped gives its results when it is done again; under exactly once only then.
func TestResultsOfWorkThatIsDoneAgain(t *testing.T) {
	eachGuarantee(t, func(t *testing.T, r *lateRig) {
		r.plan(1, own(id(0)))
		r.awaitPhase(id(0), handover.Running)
		r.send(0, 100, 5)
		r.awaitProcessed(100)
		r.inside(func() { r.m.failed(r.m.slots[id(0)].task, errRefusedByTest) })
		r.awaitProcessed(200)
		r.commitUntil(100)
		r.wantOutput(5)
	})
}

// A task goes on while a transaction ends. What it has done since is in the next one.
func TestResultsOfTwoTransactions(t *testing.T) {
	r := newTxnRig(t, lateStreams, 1, byHand).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	late := &lateRig{rig: r.rig, txn: r}
	r.send(0, 10, 2)
	late.awaitProcessed(10)
	asked, answer := make(chan struct{}), make(chan struct{})
	r.offsets.set(func() {
		r.offsets.before = func(commitCall) { close(asked); <-answer }
	})
	r.commit()
	<-asked
	r.offsets.set(func() { r.offsets.before = nil })
	r.send(0, 20, 2)
	late.awaitProcessed(30)
	close(answer)
	r.awaitOffset(0, 10)
	late.commitUntil(30)
	for key, got := range r.outputs() {
		if len(got) != 2 || got[0] != 5 || got[1] != 15 {
			t.Errorf("key %s: counts %v, want those of two transactions, 5 and 15", key, got)
		}
	}
	late.wantOutput(4)
}

// A result that cannot be sent on, as a store behind cannot be read, keeps the task at its last commit. It can be given
// away there, and the instance can stop.
func TestResultThatCannotBeSentOn(t *testing.T) {
	eachGuarantee(t, func(t *testing.T, r *lateRig) {
		r.spoil("1/0")
		r.plan(1, own(id(0), id(1)))
		r.awaitPhase(id(1), handover.Running)
		r.send(0, 10, 2)
		r.send(1, 10, 2)
		r.await("two attempts fail", func() bool { r.inside(r.m.commit); return r.statusOf(1).Failures >= 2 })
		r.commitUntil(10)
		plan := releaseOf(id(1), 2)
		plan.Own = []assign.TaskID{id(0)}
		r.plan(2, plan)
		r.awaitPhase(id(1), handover.Released)
		if last, _ := r.counts("out"); last["1/0"] != 0 || last["1/1"] != 0 || last["0/0"] != 5 {
			t.Errorf("output %v: want only that of partition 0", last)
		}
	})
}

// The same at a stop: what cannot be committed is dropped.
func TestStopWithAResultThatCannotBeSentOn(t *testing.T) {
	eachGuarantee(t, func(t *testing.T, r *lateRig) {
		r.spoil("0/0")
		r.plan(1, own(id(0)))
		r.send(0, 10, 2)
		r.awaitProcessed(10)
		r.end()
		if got := r.committed(); got != 0 {
			t.Errorf("offset %d is committed, want that of the beginning", got)
		}
		if last, n := r.counts("out"); n > 0 {
			t.Errorf("output %v, want none", last)
		}
	})
}

// spoil makes the second store unreadable for a key, as if another topology had written it.
func (r *lateRig) spoil(key string) {
	r.t.Helper()
	bad := &kgo.Record{Topic: "app-most-changelog", Partition: int32(key[0] - '0'), Key: []byte(key), Value: []byte("bad")}
	if err := r.client.ProduceSync(context.Background(), bad).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}
