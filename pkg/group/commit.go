package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
		return unsettled(offsets, err)
	}
	v := c.verdicts(topics, offsets)
	for _, t := range answer.(*kmsg.OffsetCommitResponse).Topics {
		for _, p := range t.Partitions {
			v.add(t.Topic, t.TopicID, p.Partition, p.ErrorCode)
		}
	}
	return v.err()
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
