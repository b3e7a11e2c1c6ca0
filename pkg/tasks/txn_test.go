package tasks

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// The client gets a new epoch in the middle of a transaction, without telling: what was written before it is
// aborted, what is written after it would be committed by itself.
func TestProducerThatIsRenewedInATransaction(t *testing.T) {
	r := newTxnRig(t, countStreams, 1, byHand).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	r.send(0, 4, 1)
	r.awaitWritten("out", 0, 4)
	var hit atomic.Bool
	r.cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.ProduceRequest)
		if req.TransactionID == nil || !hit.CompareAndSwap(false, true) {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewProduceResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewProduceResponseTopicPartition()
				// As after the records that were written before were deleted.
				sp.Partition, sp.ErrorCode, sp.LogStartOffset = rp.Partition, kerr.InvalidProducerEpoch.Code, 1000
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	r.send(0, 4, 1)
	r.await("the client is answered", hit.Load)
	r.awaitWritten("out", 0, 9) // with the marker of the abort
	r.commit()
	r.await("the work is done again", func() bool { r.commit(); return r.committedOffset(0).Offset == 8 })
	r.awaitExactlyOnce()
}

// breakTask makes a task fail.
func (r *txnRig) breakTask(t assign.TaskID) {
	r.t.Helper()
	r.inside(func() { r.m.failed(r.m.slots[t].task, errors.New("broken by the test")) })
}

// A commit of offsets alone is on its way when the tasks are dropped. They are opened under the same lease once
// it is answered, not only in the next round.
func TestPlainCommitThatOutlivesItsTransaction(t *testing.T) {
	r := newTxnRig(t, silentStreams, 2, byHand).start()
	r.send(0, 5, 1)
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 5 })
	asked, answer := make(chan struct{}), make(chan struct{})
	r.offsets.set(func() {
		r.offsets.before = func(commitCall) { close(asked); <-answer }
	})
	r.commit()
	<-asked
	r.breakTask(id(1))
	r.awaitPhase(id(0), handover.Opening)
	r.offsets.set(func() { r.offsets.before = nil })
	close(answer)
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	r.awaitOffset(0, 5)
	if n := r.m.Totals().Aborts; n != 0 {
		t.Errorf("%d aborts counted, though nothing was written", n)
	}
}

// Two rounds pass while the commit is refused, and both order the same release. Nothing is aborted for it.
func TestReleaseOrderedTwiceWhileTheTransactionIsRefused(t *testing.T) {
	r := newTxnRig(t, countStreams, 2, byHand).start()
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	r.send(0, 5, 1)
	r.send(1, 5, 1)
	r.awaitWritten("out", 0, 1)
	r.awaitWritten("out", 1, 1)
	r.offsets.set(func() { r.offsets.refuse = func(l handover.Lease) bool { return l.Generation < 3 } })
	r.commit()
	r.awaitPhaseOfTransaction(txnRefused)
	told := func(generation int32) {
		p := releaseOf(id(0), 2)
		p.Own = []assign.TaskID{id(1)}
		r.plan(generation, p)
	}
	told(2)
	r.awaitPhaseOfTransaction(txnRefused)
	told(3)
	r.awaitPhase(id(0), handover.Released)
	tok := r.token(0)
	if tok == nil || tok.Release != (assign.ReleaseID{Generation: 2, Owner: "me"}) || r.committedOffset(0).Offset != 5 {
		t.Fatalf("committed %+v", r.committedOffset(0))
	}
	r.awaitExactlyOnce()
	if n := r.m.Totals().Aborts; n != 0 {
		t.Errorf("%d transactions aborted", n)
	}
}

// A commit that is refused under a good lease, by a coordinator that moves for instance, is sent again. It asks for
// no rounds: they would only bring more refusals.
func TestRefusedTransactionIsTriedAgain(t *testing.T) {
	r := newTxnRig(t, countStreams, 1).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	var refusals atomic.Int32
	r.offsets.set(func() { r.offsets.refuse = func(handover.Lease) bool { return refusals.Add(1) <= 3 } })
	rounds := r.group.rounds.Load()
	r.send(0, 5, 1)
	r.awaitOffset(0, 5)
	r.awaitExactlyOnce()
	if n := r.group.rounds.Load() - rounds; n != 0 {
		t.Errorf("%d rounds asked for", n)
	}
	if n := r.m.Totals().Aborts; n != 0 {
		t.Errorf("%d transactions aborted", n)
	}
}

// A task is taken while the producer cannot start. It writes with the one that does in the end.
func TestTakenWhileNoProducerIsReady(t *testing.T) {
	r := newTxnRig(t, countStreams, 1)
	fault := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TxnID: "app-me", Err: kerr.InvalidTransactionTimeout, Count: -1})
	r.start()
	release := assign.ReleaseID{Generation: 1, Owner: "other"}
	text := handover.Metadata{Committer: "other", Token: &handover.Token{Release: release, Positions: []int64{0}}}
	r.offsets.write(t, "in", 0, 0, text.String())
	r.plan(2, takeOf(id(0), 1, "other"))
	r.awaitMode(id(0), running)
	r.send(0, 5, 1)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 5 })
	hits := fault.Hits()
	r.await("other producers are tried", func() bool { return fault.Hits() > hits+1 })
	fault.Remove()
	r.awaitOffset(0, 5)
	r.awaitExactlyOnce()
	if n := r.m.Totals().Aborts; n != 0 {
		t.Errorf("%d transactions aborted", n)
	}
}

// A process that has lost the group may have a successor under its id. It leaves that alone until it has a plan.
func TestProducerWaitsForAPlanAfterTheGroupIsLost(t *testing.T) {
	r := newTxnRig(t, countStreams, 1).start()
	r.plan(1, own(id(0)))
	r.send(0, 5, 1)
	r.awaitOffset(0, 5)
	starts := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TxnID: "app-me", Count: -1, Observe: true})
	r.m.Lost(net.ErrClosed)
	r.awaitMode(id(0), absent)
	time.Sleep(20 * time.Millisecond) // for a request that ought not to come
	if n := starts.Hits(); n != 0 {
		t.Fatalf("%d producers started without a lease", n)
	}
	r.plan(2, own(id(0)))
	r.send(0, 5, 1)
	r.awaitOffset(0, 10)
	r.awaitExactlyOnce()
}

// Held between two transactions, a task does not run ahead without bound, also if it writes nothing but changes.
func TestHeldTaskDoesNotRunAheadWithoutBound(t *testing.T) {
	r := newTxnRig(t, "- name: s\n  from: {topic: in}\n  steps:\n    - count: {store: counts}\n", 1, byHand).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	r.send(0, 5, 1)
	r.await("the records are processed", func() bool { return r.m.Totals().RecordsIn == 5 })
	asked, answer := make(chan struct{}), make(chan struct{})
	r.offsets.set(func() {
		r.offsets.before = func(commitCall) { close(asked); <-answer }
	})
	r.commit()
	<-asked
	r.send(0, heldAll+5*chunkSize, 1)
	most := int64(heldAll + chunkSize + 5)
	r.await("the task waits", func() bool { return r.m.Totals().RecordsIn > heldAll })
	time.Sleep(50 * time.Millisecond) // for records that ought not to be processed
	if n := r.m.Totals().RecordsIn; n > most {
		t.Errorf("%d records processed", n)
	}
	r.offsets.set(func() { r.offsets.before = nil })
	close(answer)
	r.await("all is processed", func() bool { return r.m.Totals().RecordsIn == heldAll+5*chunkSize+5 })
}

// A producer that does not start is tried again while there is a lease, and not without one.
func TestProducerThatDoesNotStart(t *testing.T) {
	r := newTxnRig(t, countStreams, 1)
	fault := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TxnID: "app-me", Err: kerr.InvalidTransactionTimeout, Count: -1})
	r.start()
	r.plan(1, own(id(0)))
	r.send(0, 5, 1)
	r.await("it is tried again", func() bool { return fault.Hits() >= 3 })
	r.await("the status says why", func() bool {
		ts := r.statusOf(0)
		return errors.Is(ts.Err, kerr.InvalidTransactionTimeout) && ts.Failures >= 2
	})
	r.m.Lost(net.ErrClosed)
	r.await("it waits", func() (waits bool) {
		r.inside(func() { waits = r.m.txn.pending && !r.m.txn.starting })
		return waits
	})
	fault.Remove()
	r.plan(2, own(id(0)))
	r.awaitOffset(0, 5)
	r.await("the failure is forgotten", func() bool { return r.statusOf(0).Err == nil })
	r.awaitExactlyOnce()
}

// The attempt that was put off when the group was lost is not made after a plan has made another: it would end a producer that works, and its
// transaction with it.
func TestProducerThatHasStartedIsNotStartedAgain(t *testing.T) {
	r := newTxnRig(t, countStreams, 1)
	fault := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TxnID: "app-me", Err: kerr.InvalidTransactionTimeout, Count: -1})
	r.start()
	r.plan(1, own(id(0)))
	var failures int
	r.await("an attempt is put off", func() (off bool) {
		r.inside(func() { off, failures = r.m.txn.failures >= 2 && !r.m.txn.starting, r.m.txn.failures })
		return off
	})
	fault.Remove()
	r.m.Lost(net.ErrClosed)
	r.plan(2, own(id(0)))
	var started int
	r.await("the producer has started", func() (open bool) {
		r.inside(func() { open, started = r.m.txn.phase == txnOpen, r.m.txn.number })
		return open
	})
	time.Sleep(backoff(failures) + 100*time.Millisecond) // for an attempt that ought not to come
	r.inside(func() {
		if now := r.m.txn.number; now != started {
			t.Errorf("producer %d has been replaced by %d", started, now)
		}
	})
	r.send(0, 5, 1)
	r.awaitOffset(0, 5)
	r.awaitExactlyOnce()
}

// The brokers take the offsets of all tasks but one. That one is dropped and waits, the others go on; what is
// committed is not done again.
func TestOffsetsThatAreRefusedForOneTask(t *testing.T) {
	for name, streams := range map[string]string{"in a transaction": countStreams, "by themselves": silentStreams} {
		t.Run(name, func(t *testing.T) {
			r := newTxnRig(t, streams, 2).start()
			r.plan(1, own(id(0), id(1)))
			r.awaitPhase(id(0), handover.Running)
			r.awaitPhase(id(1), handover.Running)
			r.offsets.set(func() { r.offsets.spoiled = 1 })
			r.send(0, 5, 1)
			r.send(1, 5, 1)
			r.awaitOffset(0, 5)
			r.await("the failures are told", func() bool { return r.statusOf(1).Failures >= 2 })
			if st := r.statusOf(0); st.Failures != 0 || !errors.Is(r.statusOf(1).Err, errRefusedByTest) {
				t.Errorf("%+v, %+v", st, r.statusOf(1))
			}
			r.send(0, 5, 1)
			r.awaitOffset(0, 10)
			r.offsets.set(func() { r.offsets.spoiled = 0 })
			r.awaitOffset(1, 5)
			if streams == countStreams {
				r.awaitExactlyOnce()
			}
		})
	}
}
