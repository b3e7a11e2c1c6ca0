package group

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

func commitFailed(offsets []OffsetCommit, err error) *CommitError {
	e := &CommitError{Partitions: make(map[TopicPartition]error, len(offsets))}
	for _, o := range offsets {
		e.Partitions[TopicPartition{o.Topic, o.Partition}] = err
	}
	return e
}

// unsettled is the error of a commit whose request failed without an answer.
func unsettled(offsets []OffsetCommit, err error) *CommitError {
	class := ErrUnanswered
	if errors.As(err, new(notSent)) {
		class = ErrRefused
	}
	return commitFailed(offsets, fmt.Errorf("%w: %w", class, err))
}

// verdicts gathers what an answer says of a commit's partitions. One that the answer leaves out has no verdict.
type verdicts struct {
	c      *Coordinator
	topics map[[16]byte]string // answers name topics by name or by id
	failed map[TopicPartition]error
}

func (c *Coordinator) verdicts(topics map[[16]byte]string, offsets []OffsetCommit) *verdicts {
	none := commitFailed(offsets, fmt.Errorf("%w: the answer leaves the partition out", ErrUnanswered))
	return &verdicts{c: c, topics: topics, failed: none.Partitions}
}

func (v *verdicts) add(topic string, id [16]byte, partition int32, code int16) {
	if topic == "" {
		topic = v.topics[id]
	}
	v.c.moved(code)
	at := TopicPartition{topic, partition}
	if err := verdict(code); err != nil {
		v.failed[at] = err
	} else {
		delete(v.failed, at)
	}
}

// err returns nil or a *CommitError.
func (v *verdicts) err() error {
	if len(v.failed) == 0 {
		return nil
	}
	return &CommitError{Partitions: v.failed}
}

// verdict says what the coordinator's answer for a partition means. The answers listed here are given
// before anything is written. Others, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR and REQUEST_TIMED_OUT
// among them, also come when the commit is in the coordinator's log and only its replication was not seen
// to the end (too few replicas in sync, the coordinator moved): it may become valid later.
func verdict(code int16) error {
	err := kerr.ErrorForCode(code)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.RebalanceInProgress),
		errors.Is(err, kerr.IllegalGeneration),
		errors.Is(err, kerr.UnknownMemberID),
		errors.Is(err, kerr.FencedInstanceID),
		errors.Is(err, kerr.FencedMemberEpoch),
		errors.Is(err, kerr.StaleMemberEpoch),
		errors.Is(err, kerr.CoordinatorLoadInProgress),
		errors.Is(err, kerr.GroupIDNotFound),
		errors.Is(err, kerr.InvalidGroupID),
		errors.Is(err, kerr.GroupAuthorizationFailed),
		errors.Is(err, kerr.TopicAuthorizationFailed),
		errors.Is(err, kerr.UnknownTopicOrPartition),
		errors.Is(err, kerr.UnknownTopicID),
		errors.Is(err, kerr.OffsetMetadataTooLarge),
		errors.Is(err, kerr.InvalidCommitOffsetSize):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
}
