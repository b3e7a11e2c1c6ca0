package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// watch reads a count's output as it comes, as a consumer does, and notes how long nothing came.
type watch struct {
	client *kgo.Client
	done   chan struct{}
	cancel context.CancelFunc

	mu    sync.Mutex
	table table
	flows []flow // by partition
	err   error
}

// flow is a partition's output in a period.
type flow struct {
	last    time.Time     // arrival of the newest record, or the period's begin
	gap     time.Duration // longest between two arrivals, of those that ended in the period
	slowest time.Duration // from a record's timestamp, that of the input, to its arrival
}

// arrive notes records that came together; oldest is the smallest of their timestamps.
func (f *flow) arrive(now, oldest time.Time) {
	f.gap = max(f.gap, now.Sub(f.last))
	f.slowest = max(f.slowest, now.Sub(oldest))
	f.last = now
}

// longest is the longest gap until now, an open one too.
func (f *flow) longest(now time.Time) time.Duration { return max(f.gap, now.Sub(f.last)) }

// newWatch begins to read at the topic's present end. A count that it never sees is 0.
func (b *bench) newWatch(ctx context.Context, topic string, keys int) (*watch, error) {
	ends, err := b.ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	offsets := map[int32]kgo.Offset{}
	for partition, end := range ends {
		offsets[partition] = kgo.NewOffset().At(end)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMinBytes(1), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{client: client, done: make(chan struct{}), cancel: cancel, table: *newTable(plainKeys(keys)), flows: make([]flow, len(ends))}
	w.begin()
	go w.run(ctx)
	return w, nil
}

func (w *watch) close() {
	w.cancel()
	<-w.done
	w.client.Close()
}

func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	for ctx.Err() == nil {
		w.take(w.client.PollFetches(ctx), time.Now())
	}
}

func (w *watch) take(fetches kgo.Fetches, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		oldest := p.Records[0].Timestamp
		for _, r := range p.Records {
			if r.Timestamp.Before(oldest) {
				oldest = r.Timestamp
			}
			if err := w.table.take(r); err != nil && w.err == nil {
				w.err = fmt.Errorf("output, partition %d, offset %d: %w", r.Partition, r.Offset, err)
			}
		}
		w.flows[p.Partition].arrive(now, oldest)
	})
}

// begin starts a new period. A stall that is under way goes on: it ends in the new period.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.flows {
		f := &w.flows[i]
		f.gap, f.slowest = 0, 0
		if f.last.IsZero() {
			f.last = time.Now()
		}
	}
}

// period is what happened since the last begin: the longest gaps, sorted, and the slowest record.
func (w *watch) period() (gaps []time.Duration, slowest time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i := range w.flows {
		gaps = append(gaps, w.flows[i].longest(now))
		slowest = max(slowest, w.flows[i].slowest)
	}
	slices.Sort(gaps)
	return gaps, slowest, w.err
}

// counts compares what came with what must have come.
func (w *watch) counts(want []int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return w.table.compare(want)
}
