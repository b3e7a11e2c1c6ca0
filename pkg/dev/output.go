package dev

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// output reads the topics that the application writes. Of the word count it keeps the last count of each word.
type output struct {
	client *kgo.Client
	topics []string
	counts bool // the records are counts of words

	mu      sync.Mutex
	records int64
	last    map[string]int64
	next    map[string]map[int32]int64 // the offset after the last record read, by topic and partition
}

func newOutput(b *broker, a *application) (*output, error) {
	o := &output{topics: a.topology.Outputs(), counts: !a.own(), last: make(map[string]int64), next: make(map[string]map[int32]int64)}
	for _, t := range o.topics {
		o.next[t] = make(map[int32]int64)
	}
	if len(o.topics) == 0 {
		return o, nil
	}
	var err error
	o.client, err = kgo.NewClient(b.options(kgo.ConsumeTopics(o.topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	return o, err
}

// run reads until the context ends.
func (o *output) run(ctx context.Context) error {
	if o.client == nil {
		return nil
	}
	defer o.client.Close()
	for {
		fetches := o.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("reading topic %s partition %d: %w", e.Topic, e.Partition, e.Err)
		}
		if err := o.take(fetches); err != nil {
			return err
		}
	}
}

func (o *output) take(fetches kgo.Fetches) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for iter := fetches.RecordIter(); !iter.Done(); {
		r := iter.Next()
		o.records++
		o.next[r.Topic][r.Partition] = r.Offset + 1
		if !o.counts {
			continue
		}
		if len(r.Value) != 8 {
			return fmt.Errorf("topic %s partition %d offset %d: a count has 8 bytes, this value has %d", r.Topic, r.Partition, r.Offset, len(r.Value))
		}
		o.last[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value))
	}
	return nil
}

// read is how many records were read.
func (o *output) read() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.records
}

// got are the last counts.
func (o *output) got() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.last)
}

// countOf are the last counts of some words.
func (o *output) countOf(words []string) []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := make([]int64, len(words))
	for i, w := range words {
		counts[i] = o.last[w]
	}
	return counts
}

// reached says whether everything up to the ends was read. Under exactly once the last offsets may be those of markers,
// which nobody sees.
func (o *output) reached(ends kadm.ListedOffsets) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := true
	ends.Each(func(end kadm.ListedOffset) {
		all = all && o.next[end.Topic][end.Partition] >= end.Offset
	})
	return all
}
