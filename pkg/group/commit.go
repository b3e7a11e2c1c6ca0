package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// OffsetCommit is what to commit for one partition: the offset of the next record to process, and a text
// that goes with it (at most 4096 bytes unless offset.metadata.max.bytes says otherwise).
type OffsetCommit struct {
	Topic     string
	Partition int32
	Offset    int64
	Metadata  string
}

// CommitError says which partitions of a commit were not acknowledged. Each error wraps ErrRefused or
// ErrUnanswered and, if the broker answered, its error; so does the CommitError as a whole.
type CommitError struct {
	Partitions map[TopicPartition]error
}

// Error names one partition for each different reason.
func (e *CommitError) Error() string {
	count := make(map[string]int)
	for _, err := range e.Partitions {
		count[err.Error()]++
	}
	reasons := make([]string, 0, len(count))
	for _, text := range slices.Sorted(maps.Keys(count)) {
		reasons = append(reasons, fmt.Sprintf("%s (%d partitions)", text, count[text]))
	}
	return "commit offsets: " + strings.Join(reasons, "; ")
}

// Unwrap returns the errors of all partitions.
func (e *CommitError) Unwrap() []error { return slices.Collect(maps.Values(e.Partitions)) }

// Of returns the error of one partition, nil if its offset was committed.
func (e *CommitError) Of(p TopicPartition) error { return e.Partitions[p] }

// Commit commits the offsets in one request under the lease of memberID and generation. It returns nil
// when all are acknowledged, else a *CommitError.
//
// The request is sent at most once and never again by itself. What was refused may be tried again under
// the rules of leases; after ErrUnanswered the request may still be carried out later, so nothing more may
// be committed for these partitions under this generation.
//
// The coordinator accepts commits while it waits for members to join (under the old generation), and
// refuses them with REBALANCE_IN_PROGRESS between the last join and the leader's plan.
func (c *Coordinator) Commit(ctx context.Context, memberID string, generation int32, offsets []OffsetCommit) error {
	if len(offsets) == 0 {
		return nil
	}
	req, topics, err := c.commitRequest(ctx, memberID, generation, offsets)
	if err != nil {
		return commitFailed(offsets, fmt.Errorf("%w: %w", ErrRefused, err))
	}
	answer, err := c.send(ctx, req)
	if err != nil {
		class := ErrUnanswered
		if errors.As(err, new(notSent)) {
			class = ErrRefused
		}
		return commitFailed(offsets, fmt.Errorf("%w: %w", class, err))
	}

	// A partition that the answer leaves out has no verdict.
	failed := commitFailed(offsets, fmt.Errorf("%w: the answer leaves the partition out", ErrUnanswered)).Partitions
	for _, t := range answer.(*kmsg.OffsetCommitResponse).Topics {
		name := t.Topic
		if name == "" {
			name = topics[t.TopicID]
		}
		for _, p := range t.Partitions {
			c.moved(p.ErrorCode)
			at := TopicPartition{name, p.Partition}
			if err := verdict(p.ErrorCode); err != nil {
				failed[at] = err
			} else {
				delete(failed, at)
			}
		}
	}
	if len(failed) > 0 {
		return &CommitError{Partitions: failed}
	}
	return nil
}

// commitRequest builds the request; it also returns the topics' names by id. Topics carry both name and id,
// as it depends on the version which of them is sent.
func (c *Coordinator) commitRequest(ctx context.Context, memberID string, generation int32, offsets []OffsetCommit) (*kmsg.OffsetCommitRequest, map[[16]byte]string, error) {
	parts := make(map[string][]kmsg.OffsetCommitRequestTopicPartition)
	names := make(map[string]bool)
	for _, o := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = o.Partition, o.Offset, kmsg.StringPtr(o.Metadata)
		parts[o.Topic] = append(parts[o.Topic], p)
		names[o.Topic] = true
	}
	ids, err := c.topicIDs(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = c.group, memberID, generation
	topics := make(map[[16]byte]string, len(names))
	for name := range names {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID, t.Partitions = name, ids[name], parts[name]
		req.Topics = append(req.Topics, t)
		topics[ids[name]] = name
	}
	return req, topics, nil
}

func commitFailed(offsets []OffsetCommit, err error) *CommitError {
	e := &CommitError{Partitions: make(map[TopicPartition]error, len(offsets))}
	for _, o := range offsets {
		e.Partitions[TopicPartition{o.Topic, o.Partition}] = err
	}
	return e
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
