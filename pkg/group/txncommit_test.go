package group

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// writer has a transaction open in which it has written to the topic.
func (k *cluster) writer(id, topic string) (*kgo.Client, Transaction) {
	k.t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...), kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(p.Close)
	if err := p.BeginTransaction(); err != nil {
		k.t.Fatal(err)
	}
	if err := p.ProduceSync(k.t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
		k.t.Fatal(err)
	}
	return p, k.transaction(p, id)
}

// transaction names the one that is open.
func (k *cluster) transaction(p *kgo.Client, id string) Transaction {
	k.t.Helper()
	pid, epoch, err := p.ProducerID(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	return Transaction{ID: id, ProducerID: pid, Epoch: epoch}
}

// version2 says whether the brokers run transaction version 2.
func (k *cluster) version2() bool {
	k.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...))
	if err != nil {
		k.t.Fatal(err)
	}
	defer cl.Close()
	features, err := kmsg.NewPtrApiVersionsRequest().RequestWith(k.t.Context(), cl)
	if err != nil {
		k.t.Fatal(err)
	}
	return slices.ContainsFunc(features.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
		return f.Name == "transaction.version" && f.MaxVersionLevel >= 2
	})
}

func TestCommitInTransaction(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		if !k.version2() {
			t.Skip("the brokers want AddOffsetsToTxn, which is the producer's")
		}
		in, topic, c, _ := k.member()
		id, generation := in.lease()
		at := TopicPartition{topic, 1}
		committed := func() int64 {
			t.Helper()
			got, err := c.Fetch(t.Context(), []TopicPartition{at})
			if err != nil {
				t.Fatal(err)
			}
			if errors.Is(got[at].Err, ErrUnstable) {
				return -2
			}
			return got[at].Offset
		}
		offsets := func(n int64) []OffsetCommit { return []OffsetCommit{{topic, 0, n, "m"}, {topic, 1, n, "m"}} }
		p, txn := k.writer(k.name(), topic)

		// Under another lease it is refused as a whole, and the transaction goes on.
		for _, bad := range []struct {
			id         string
			generation int32
			want       error
		}{{id, generation - 1, kerr.IllegalGeneration}, {"x-" + uuidA, generation, kerr.UnknownMemberID}} {
			err := c.CommitInTransaction(t.Context(), txn, bad.id, bad.generation, offsets(5))
			var failed *CommitError
			if !errors.As(err, &failed) || len(failed.Partitions) != 2 || errors.Is(err, ErrUnanswered) || !errors.Is(err, bad.want) {
				t.Errorf("member %s, generation %d: %v", bad.id, bad.generation, err)
			}
		}
		if err := c.CommitInTransaction(t.Context(), txn, id, generation, offsets(10)); err != nil {
			t.Fatal(err)
		}
		if got := committed(); got != -2 {
			t.Errorf("offset %d before the transaction has ended", got)
		}
		if err := p.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it counts", func() bool { return committed() == 10 })

		// An aborted one does not count.
		if err := p.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := p.ProduceSync(t.Context(), kgo.StringRecord("y")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := c.CommitInTransaction(t.Context(), k.transaction(p, txn.ID), id, generation, offsets(20)); err != nil {
			t.Fatal(err)
		}
		if err := p.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the former offset counts", func() bool { return committed() == 10 })

		// A fenced one is not to be tried again.
		_, _ = k.writer(txn.ID, topic)
		err := c.CommitInTransaction(t.Context(), txn, id, generation, offsets(30))
		if !errors.Is(err, ErrUnanswered) || !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
			t.Errorf("of a fenced producer: %v", err)
		}
	})
}

// The coordinator moves, or has not ended the transaction before: the same request is sent again.
func TestCommitInTransactionIsSentAgain(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(2, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	k := newCluster(t, fake.ListenAddrs(), fake)
	c := k.coordinator("g")
	_, txn := k.writer("id", "in")
	commit := func(ctx context.Context) error {
		return c.CommitInTransaction(ctx, txn, "", -1, []OffsetCommit{{"in", 0, 7, ""}, {"in", 1, 7, ""}})
	}
	for _, answer := range []*kerr.Error{kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.RequestTimedOut} {
		fault := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: answer, Count: 2})
		if err := commit(t.Context()); err != nil || fault.Hits() != 2 {
			t.Errorf("%s: %v after %d answers", answer.Message, err, fault.Hits())
		}
	}
	// Not after another answer for one of the partitions, nor for ever.
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Partitions: []int32{0}, Err: kerr.NotCoordinator},
		kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Partitions: []int32{1}, Err: kerr.OffsetMetadataTooLarge})
	if err := commit(t.Context()); !errors.Is(err, kerr.NotCoordinator) || !errors.Is(err, kerr.OffsetMetadataTooLarge) {
		t.Errorf("two answers: %v", err)
	}
	fault := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.ConcurrentTransactions, Count: -1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- commit(ctx) }()
	if err := fault.Wait(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, ErrUnanswered) {
		t.Errorf("given up: %v", err)
	}
}
