package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// valueBytes is the size of the values of events.
const valueBytes = 100

// input is a topic that was loaded once for all runs.
type input struct {
	topic  string
	ends   map[int32]int64
	counts []int64 // events: how often each key is in it

	kept  int64 // orders: how many pass the filter
	cents int64 // and the sum of their amounts
}

// keyName is the name of the i-th key.
func keyName(i int) []byte { return fmt.Appendf(nil, "key-%07d", i) }

// keyNames are all of them, so that a load makes none.
func keyNames(n int) [][]byte {
	names := make([][]byte, n)
	for i := range names {
		names[i] = keyName(i)
	}
	return names
}

// keyIndex is the inverse of keyName; false: it is no such name.
func keyIndex(name []byte) (int, bool) {
	const prefix = "key-"
	if len(name) <= len(prefix) || string(name[:len(prefix)]) != prefix {
		return 0, false
	}
	n := 0
	for _, c := range name[len(prefix):] {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// draws are the keys of a load, the same each time.
func draws(keys int) func() int {
	random := rand.New(rand.NewPCG(1, uint64(keys)))
	return func() int { return random.IntN(keys) }
}

// events is the topic with records of so many keys; it is loaded the first time. Values are random bytes, and timestamps are
// those that windows need.
func (b *bench) events(ctx context.Context, keys, partitions int) (*input, error) {
	topic := fmt.Sprintf("events-%d-%d", keys, partitions)
	return b.loaded(ctx, topic, partitions, func(in *input, l *loader) error {
		in.counts = make([]int64, keys)
		names, draw, next, random := keyNames(keys), draws(keys), b.times(), rand.NewChaCha8([32]byte{})
		for range b.records {
			k := draw()
			value := make([]byte, valueBytes)
			random.Read(value) //nolint:errcheck // it never fails
			if err := l.send(ctx, &kgo.Record{Topic: topic, Key: names[k], Value: value, Timestamp: next()}); err != nil {
				return err
			}
			in.counts[k]++
		}
		return nil
	})
}

// orders is a topic of JSON, half of which passes the filter. Amounts are quarters: their cents are exact.
func (b *bench) orders(ctx context.Context) (*input, error) {
	const topic = "orders"
	return b.loaded(ctx, topic, b.partitions, func(in *input, l *loader) error {
		names, draw := keyNames(b.small), draws(b.small)
		random := rand.New(rand.NewPCG(2, 3))
		for i := range b.records {
			quarters := random.Int64N(400)
			value := fmt.Appendf(nil, `{"id":%d,"user":"user-%05d","amount":%.2f,"country":"NL","note":"%016x%08x"}`,
				i, random.IntN(100_000), float64(quarters)/4, random.Uint64(), random.Uint32())
			if err := l.send(ctx, &kgo.Record{Topic: topic, Key: names[draw()], Value: value}); err != nil {
				return err
			}
			if quarters > 200 {
				in.kept++
				in.cents += quarters * 25
			}
		}
		return nil
	})
}

func (b *bench) loaded(ctx context.Context, topic string, partitions int, fill func(*input, *loader) error) (*input, error) {
	if in := b.inputs[topic]; in != nil {
		return in, nil
	}
	in := &input{topic: topic}
	if err := b.create(ctx, partitions, nil, topic); err != nil {
		return nil, err
	}
	if err := b.load(ctx, topic, func(l *loader) error { return fill(in, l) }); err != nil {
		return nil, err
	}
	var err error
	if in.ends, err = b.ends(ctx, topic); err != nil {
		return nil, err
	}
	b.inputs[topic] = in
	return in, nil
}

// fillChangelog writes a changelog of counts as a side would, one record for each draw.
func (b *bench) fillChangelog(ctx context.Context, s side, topic string, keys int) (counts []int64, err error) {
	counts = make([]int64, keys)
	names, draw, now := keyNames(keys), draws(keys), time.Now()
	err = b.load(ctx, topic, func(l *loader) error {
		for range b.records {
			k := draw()
			counts[k]++
			if err := l.send(ctx, &kgo.Record{Topic: topic, Key: names[k], Value: s.stored(counts[k], now)}); err != nil {
				return err
			}
		}
		return nil
	})
	return counts, err
}

// loader produces as fast as it goes.
type loader struct {
	client *kgo.Client
	failed atomic.Pointer[error]
}

// load runs fill with a loader, and waits until all of it is acknowledged.
func (b *bench) load(ctx context.Context, topic string, fill func(*loader) error) error {
	b.log.Info("loading", "topic", topic)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Address), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(200_000), kgo.ProducerBatchMaxBytes(500<<10), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	l := &loader{client: client}
	if err = fill(l); err == nil {
		err = l.flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("loading topic %s: %w", topic, err)
	}
	return nil
}

func (l *loader) send(ctx context.Context, r *kgo.Record) error {
	l.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
		if err != nil {
			l.failed.Store(&err)
		}
	})
	return ctx.Err()
}

// flush waits until everything is acknowledged. A record that failed makes the load worthless.
func (l *loader) flush(ctx context.Context) error {
	err := l.client.Flush(ctx)
	if failed := l.failed.Load(); failed != nil {
		err = errors.Join(err, *failed)
	}
	return err
}

// countOf reads a count from the output of either side.
func countOf(value []byte) (int64, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(value)), true
}
