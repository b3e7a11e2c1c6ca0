package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// read hands on each record of a topic from the given offsets to its present end, as a reader of committed data sees
// it.
func (b *bench) read(ctx context.Context, topic string, from map[int32]int64, each func(*kgo.Record) error) error {
	ends, err := b.ends(ctx, topic)
	if err != nil {
		return err
	}
	open := map[int32]int64{}
	offsets := map[int32]kgo.Offset{}
	for partition, end := range ends {
		if from[partition] < end {
			open[partition], offsets[partition] = end, kgo.NewOffset().At(from[partition])
		}
	}
	if len(open) == 0 {
		return nil
	}
	// Control records tell that the end is reached where a transaction's marker is the last one.
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading topic %s: %w", topic, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			if end, ok := open[r.Partition]; ok && r.Offset+1 >= end {
				delete(open, r.Partition)
			}
			if r.Attrs.IsControl() {
				continue
			}
			if err := each(r); err != nil {
				return fmt.Errorf("topic %s, partition %d, offset %d: %w", topic, r.Partition, r.Offset, err)
			}
		}
	}
	return nil
}

// keySpace is what the keys of an output may be.
type keySpace struct {
	size  int
	index func(name []byte) (i int, ok bool)
	name  func(i int) []byte // inverse of index
}

// plainKeys are those of events.
func plainKeys(n int) keySpace { return keySpace{n, keyIndex, keyName} }

// table is the last count of each key, and how many records told it.
type table struct {
	keys    keySpace
	counts  []int64
	records int64
}

func newTable(keys keySpace) *table { return &table{keys: keys, counts: make([]int64, keys.size)} }

func (t *table) take(r *kgo.Record) error {
	key, ok := t.keys.index(r.Key)
	count, fine := countOf(r.Value)
	if !ok || !fine || key >= len(t.counts) {
		return fmt.Errorf("key %q, value %q: neither side writes that", r.Key, r.Value)
	}
	t.counts[key] = count
	t.records++
	return nil
}

// verifyCounts compares a count's output with what it must be. everyUpdate demands one record of output for each of input.
func (b *bench) verifyCounts(ctx context.Context, output string, keys keySpace, want []int64, everyUpdate bool) error {
	got := newTable(keys)
	if err := b.read(ctx, output, nil, got.take); err != nil {
		return err
	}
	if err := got.compare(want); err != nil {
		return err
	}
	if everyUpdate && got.records != int64(b.records) {
		return fmt.Errorf("wrong results: %d records of output for %d of input, though each update is to be sent", got.records, b.records)
	}
	return nil
}

// compare tells how the counts differ from what they must be.
func (t *table) compare(want []int64) error {
	var below, above int64
	example := ""
	for key, n := range want {
		switch {
		case t.counts[key] < n:
			below += n - t.counts[key]
		case t.counts[key] > n:
			above += t.counts[key] - n
		default:
			continue
		}
		if example == "" {
			example = fmt.Sprintf("%q: %d instead of %d", t.keys.name(key), t.counts[key], n)
		}
	}
	if example != "" {
		return fmt.Errorf("wrong results: %d records are missing from the counts, %d were counted too often, such as %s", below, above, example)
	}
	return nil
}

// verifyOrders compares the output of the filter with its input.
func (b *bench) verifyOrders(ctx context.Context, output string, in *input) error {
	var records, cents int64
	err := b.read(ctx, output, nil, func(r *kgo.Record) error {
		var order struct {
			User  string
			Cents int64
		}
		if err := json.Unmarshal(r.Value, &order); err != nil {
			return err
		}
		if order.User == "" {
			return fmt.Errorf("%q has no user", r.Value)
		}
		records++
		cents += order.Cents
		return nil
	})
	if err == nil && (records != in.kept || cents != in.cents) {
		err = fmt.Errorf("wrong results: %d orders of %d cents, want %d of %d", records, cents, in.kept, in.cents)
	}
	return err
}
