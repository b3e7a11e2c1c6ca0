package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// commitTimeout is how long a commit may go without an answer before it counts as unanswered.
const commitTimeout = 10 * time.Second

// offsets gives the task manager the group's committed offsets.
type offsets struct{ c *group.Coordinator }

var _ tasks.Offsets = offsets{}

// Commit sends one request. Refused as a whole means that nothing was written; one partition without an
// answer makes the outcome of the request unknown.
func (o offsets) Commit(ctx context.Context, lease handover.Lease, list []tasks.Offset) (handover.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return outcomeOf(len(list), o.c.Commit(ctx, lease.Member, lease.Generation, commitsOf(list)))
}

// concernsPartition says whether an offset was refused for a reason that has nothing to do with the lease.
func concernsPartition(err error) bool {
	for _, reason := range []error{
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.TopicAuthorizationFailed, kerr.OffsetMetadataTooLarge, kerr.InvalidCommitOffsetSize,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

func commitsOf(list []tasks.Offset) []group.OffsetCommit {
	commits := make([]group.OffsetCommit, len(list))
	for i, l := range list {
		commits[i] = group.OffsetCommit{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Metadata: l.Metadata}
	}
	return commits
}

// outcomeOf judges the error of a commit of n offsets.
func outcomeOf(n int, err error) (handover.Outcome, error) {
	var failed *group.CommitError
	switch {
	case err == nil:
		return handover.Acknowledged, nil
	case !errors.As(err, &failed) || errors.Is(err, group.ErrUnanswered):
		return handover.Unknown, err
	}
	refused := &tasks.RefusedError{Partitions: make(map[tasks.TopicPartition]error)}
	for p, err := range failed.Partitions {
		if concernsPartition(err) {
			refused.Partitions[tasks.TopicPartition(p)] = err
		}
	}
	switch whole := len(failed.Partitions) == n; {
	case len(refused.Partitions) == len(failed.Partitions) && whole:
		return handover.Declined, refused
	case len(refused.Partitions) == len(failed.Partitions):
		return handover.Acknowledged, refused
	case whole:
		return handover.Declined, err
	}
	return handover.Unknown, err
}

// Fetch leaves out what is unstable or failed: the task manager asks again. What failed is in the error.
func (o offsets) Fetch(ctx context.Context, parts []tasks.TopicPartition) (map[tasks.TopicPartition]tasks.Offset, error) {
	ask := make([]group.TopicPartition, len(parts))
	for i, p := range parts {
		ask[i] = group.TopicPartition{Topic: p.Topic, Partition: p.Partition}
	}
	got, err := o.c.Fetch(ctx, ask)
	if err != nil {
		return nil, err
	}
	out := make(map[tasks.TopicPartition]tasks.Offset, len(got))
	for p, c := range got {
		if c.Err != nil {
			if !errors.Is(c.Err, group.ErrUnstable) {
				err = fmt.Errorf("%s partition %d: %w", p.Topic, p.Partition, c.Err)
			}
			continue
		}
		tp := tasks.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		out[tp] = tasks.Offset{TopicPartition: tp, Offset: c.Offset, Metadata: c.Metadata}
	}
	return out, err
}
