package tasks

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func TestTransactionsCountOnce(t *testing.T) {
	r := newRig(t, countStreams, 2, exactlyOnce).start()
	r.send(0, 100, 7)
	r.plan(1, own(id(0), id(1)))
	r.send(1, 100, 7)
	r.awaitCounts()
	r.awaitCommitted(0, 100)
	r.awaitCommitted(1, 100)
	if n := r.m.Totals().Aborts; n != 0 {
		t.Fatalf("%d transactions aborted", n)
	}
}

// The instance stops, and its last transaction is on its way when a plan orders the task to be released. That
// transaction has no token in it, so its end is not yet the release; nor may the token be committed before it.
func TestReleaseOrderedDuringTheLastTransaction(t *testing.T) {
	r := newRig(t, countStreams, 1, exactlyOnce)
	r.m.patience = time.Minute
	r.start()
	r.send(0, 10, 2)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	answer := make(chan struct{})
	var premature atomic.Bool
	r.ledger.decide(func(c commitCall) (handover.Outcome, bool) {
		if c.lease.Generation == 1 {
			<-answer
		} else if r.ledger.offset("in", 0) != 20 {
			premature.Store(true)
		}
		return handover.Acknowledged, true
	})
	r.wire.shut()
	r.send(0, 10, 2)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 20 })
	r.stop()
	r.await("the instance stops", func() bool { return r.m.Status().Stopping })
	r.wire.open()
	r.await("the task has stopped", func() bool { md, _ := r.look(id(0)); return md == halted })
	r.plan(2, releaseOf(id(0), 2))
	time.Sleep(50 * time.Millisecond) // for a release that ought not to be sent yet
	close(answer)
	r.end()
	if premature.Load() {
		t.Error("released before the transaction has ended")
	}
	rel := r.ledger.releases()
	if len(rel) != 1 || rel[0].lease.Generation != 2 || rel[0].offsets[0].Offset != 20 {
		t.Fatalf("releases %+v, want one at offset 20", rel)
	}
	r.awaitCounts()
}

// A task whose records the brokers do not take must not keep the other tasks of its instance from going on.
func TestTaskThatCannotWriteStandsAside(t *testing.T) {
	r := newRig(t, countStreams, 2, exactlyOnce).start()
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	fault := r.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: "app-counts-changelog", Partitions: []int32{0}, Err: kerr.MessageTooLarge, Count: -1,
	})
	r.send(0, 10, 2)
	r.await("its failures are told", func() bool { return r.statusOf(0).Failures >= 3 })
	aborts := r.m.Totals().Aborts
	if aborts > 20 {
		t.Errorf("%d transactions aborted for %d failures of one task", aborts, r.statusOf(0).Failures)
	}
	r.send(1, 10, 2)
	r.awaitCommitted(1, 10)
	if st := r.statusOf(1); st.Err != nil {
		t.Errorf("the other task: %+v", st)
	}
	fault.Remove()
	r.awaitCommitted(0, 10)
	r.awaitCounts()
}
