package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// create creates topics.
func (b *bench) create(ctx context.Context, partitions int, config map[string]*string, names ...string) error {
	created, err := b.admin.CreateTopics(ctx, int32(partitions), -1, config, names...)
	if err == nil {
		err = created.Error()
	}
	if err != nil {
		return fmt.Errorf("creating topics %v: %w", names, err)
	}
	return nil
}

// ends are the ends of a topic's partitions.
func (b *bench) ends(ctx context.Context, topic string) (map[int32]int64, error) {
	listed, err := b.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of topic %s: %w", topic, err)
	}
	ends := map[int32]int64{}
	for partition, o := range listed[topic] {
		ends[partition] = o.Offset
	}
	return ends, nil
}

// commitPoll is how often it is looked how far a group has committed.
const commitPoll = 50 * time.Millisecond

// awaitCommitted waits until a group's committed offsets are the ends, and returns when that was seen. each is told
// of how many records are committed, whenever that is looked at; it may be nil. A process that ends is an error.
func (b *bench) awaitCommitted(ctx context.Context, group, topic string, ends map[int32]int64, p *process, each func(committed int64) error) (time.Time, error) {
	tick := time.NewTicker(commitPoll)
	defer tick.Stop()
	for {
		sum, all, err := b.committed(ctx, group, topic, ends)
		if err == nil && each != nil {
			err = each(sum)
		}
		if err != nil || all {
			return time.Now(), err
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("group %s has committed %d records of %s: %w", group, sum, topic, ctx.Err())
		case <-p.done:
			return time.Time{}, fmt.Errorf("%w: %s, exit code %d, with %d records committed: %s", errStopped, p.name, p.code, sum, p.tail())
		case <-tick.C:
		}
	}
}

// committed looks how many records a group has committed, and whether these are all.
func (b *bench) committed(ctx context.Context, group, topic string, ends map[int32]int64) (sum int64, all bool, err error) {
	offsets, err := b.admin.FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		err = nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("committed offsets of group %s: %w", group, err)
	}
	all = true
	for partition, end := range ends {
		at := int64(0)
		if o, ok := offsets.Lookup(topic, partition); ok && o.Err == nil {
			at = max(0, o.At)
		}
		sum += at
		all = all && at >= end
	}
	return sum, all, nil
}
