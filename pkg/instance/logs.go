package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/tasks"
)

// logs gives the task manager the beginnings and ends of logs, and shortens them.
type logs struct{ cl *kgo.Client }

var _ tasks.Logs = logs{}

// Timestamps that ask for a bound of a log.
const (
	logStart = -2
	logEnd   = -1
)

// Ends is each partition's log end, uncommitted records included.
func (l logs) Ends(ctx context.Context, parts []tasks.TopicPartition) (map[tasks.TopicPartition]int64, error) {
	return l.list(ctx, parts, logEnd)
}

// Starts is each partition's first retained offset.
func (l logs) Starts(ctx context.Context, parts []tasks.TopicPartition) (map[tasks.TopicPartition]int64, error) {
	return l.list(ctx, parts, logStart)
}

// list asks the leaders of these partitions, and of no others: a task must not wait for a broker that its own
// partitions have nothing to do with.
func (l logs) list(ctx context.Context, parts []tasks.TopicPartition, bound int64) (map[tasks.TopicPartition]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	index := map[string]int{}
	for _, p := range parts {
		i, ok := index[p.Topic]
		if !ok {
			i = len(req.Topics)
			index[p.Topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = p.Partition, bound
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	resp, err := req.RequestWith(ctx, l.cl)
	if err != nil {
		return nil, fmt.Errorf("asking for the bounds of logs: %w", err)
	}
	out := make(map[tasks.TopicPartition]int64, len(parts))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("%s partition %d: %w", t.Topic, p.Partition, err)
			}
			out[tasks.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Offset
		}
	}
	for _, p := range parts {
		if _, ok := out[p]; !ok {
			return nil, fmt.Errorf("%s partition %d: %w", p.Topic, p.Partition, errNoBound)
		}
	}
	return out, nil
}

var errNoBound = errors.New("the brokers do not say where its log begins or ends")

// Purge deletes each partition's records before the offset.
func (l logs) Purge(ctx context.Context, before map[tasks.TopicPartition]int64) error {
	offsets := kadm.Offsets{}
	for tp, off := range before {
		offsets.AddOffset(tp.Topic, tp.Partition, off, -1)
	}
	got, err := kadm.NewClient(l.cl).DeleteRecords(ctx, offsets)
	if err != nil {
		return err
	}
	return got.Error()
}
