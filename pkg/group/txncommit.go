package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Transaction names a producer's transaction under way.
type Transaction struct {
	ID         string // transactional id
	ProducerID int64
	Epoch      int16 // may change with each transaction (KIP-890)
}

// How often a request is repeated while the transaction before it is still being completed, and while the group
// is moving from one coordinator to another.
const (
	concurrentRetry = 5 * time.Millisecond
	movedRetry      = 50 * time.Millisecond
)

// CommitInTransaction makes the offsets part of a transaction, under the lease of memberID and generation.
// They count when the transaction is committed. It returns nil or a *CommitError as Commit does. After
// ErrUnanswered the transaction's outcome has to be settled by a new epoch of its producer.
//
// What a coordinator answers that is only not ready, is the coordinator no more, or cannot see its log replicated,
// is sent again until ctx ends. Unlike a plain commit's, that is harmless: both say the same within one transaction.
//
// A coordinator of brokers that do not run transaction version 2 has to be told of the group by
// AddOffsetsToTxn first, and must not be sent version 5 of the request: see kgo.MaxVersions.
func (c *Coordinator) CommitInTransaction(ctx context.Context, txn Transaction, memberID string, generation int32, offsets []OffsetCommit) error {
	if len(offsets) == 0 {
		return nil
	}
	plain, topics, err := c.commitRequest(ctx, memberID, generation, offsets)
	if err != nil {
		return commitFailed(offsets, fmt.Errorf("%w: %w", ErrRefused, err))
	}
	req := txnRequest(plain, txn)
	for {
		answer, err := c.send(ctx, req)
		if err != nil {
			return unsettled(offsets, err)
		}
		v := c.verdicts(topics, offsets)
		for _, t := range answer.(*kmsg.TxnOffsetCommitResponse).Topics {
			for _, p := range t.Partitions {
				v.add(t.Topic, t.TopicID, p.Partition, p.ErrorCode)
			}
		}
		var wait time.Duration
		switch {
		case len(v.failed) == 0:
			return nil
		case all(v.failed, kerr.ConcurrentTransactions):
			wait = concurrentRetry
		case all(v.failed, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.RequestTimedOut):
			wait = movedRetry
		default:
			return v.err()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return v.err()
		}
	}
}

func txnRequest(plain *kmsg.OffsetCommitRequest, txn Transaction) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = txn.ID, txn.ProducerID, txn.Epoch
	req.Group, req.MemberID, req.Generation = plain.Group, plain.MemberID, plain.Generation
	for _, t := range plain.Topics {
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.Metadata = p.Partition, p.Offset, p.Metadata
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// all says whether every partition failed by one of the errors.
func all(failed map[TopicPartition]error, by ...error) bool {
	for _, err := range failed {
		if !slices.ContainsFunc(by, func(b error) bool { return errors.Is(err, b) }) {
			return false
		}
	}
	return true
}
