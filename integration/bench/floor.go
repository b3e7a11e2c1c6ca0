package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// floorCommand makes this program one of the floors, which are processes like all that is measured.
const floorCommand = "floor"

// The floors: what the same records cost with nothing else to do.
const (
	copyFloor   = "bare loop"    // consume, produce a record for each, commit
	pebbleFloor = "Pebble alone" // read, add, write in batches; no Kafka
)

// floor measures them once for each key space.
func (b *bench) floor(ctx context.Context) error {
	for _, keys := range []int{b.small, b.large} {
		in, err := b.events(ctx, keys, b.partitions)
		if err != nil {
			return err
		}
		err = b.alternate(ctx, floorCommand, keysCase(keys),
			contender{copyFloor, "", func(ctx context.Context) (map[string]float64, error) { return b.copyOnce(ctx, in) }},
			contender{pebbleFloor, "", func(ctx context.Context) (map[string]float64, error) { return b.pebbleOnce(ctx, keys) }})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) startFloor(name, kind string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.startProcess(name, nil, append([]string{self, floorCommand, kind}, args...)...)
}

func (b *bench) copyOnce(ctx context.Context, in *input) (_ map[string]float64, err error) {
	j := newJob(filterJob, in.topic, atLeastOnce, shortCommit) // a job without state
	if err := b.createTopics(ctx, j, b.partitions); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.removeJob(ctx, j)) }()
	p, err := b.startFloor(j.app, copyFloor, b.kafka.Address, j.input, j.output, j.app)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	if _, err := b.awaitCommitted(ctx, j.app, in.topic, in.ends, p, nil); err != nil {
		return nil, err
	}
	end, err := p.used()
	if err != nil {
		return nil, err
	}
	ends, err := b.ends(ctx, j.output)
	if err != nil {
		return nil, err
	}
	var n int64
	for _, end := range ends {
		n += end
	}
	if n != int64(b.records) {
		return nil, fmt.Errorf("wrong results: %d records copied of %d", n, b.records)
	}
	return b.figures(p.began, p.began, end), p.stop()
}

func (b *bench) pebbleOnce(ctx context.Context, keys int) (map[string]float64, error) {
	dir, err := os.MkdirTemp(b.dir, "pebble-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	p, err := b.startFloor(filepath.Base(dir), pebbleFloor, dir, fmt.Sprint(b.records), fmt.Sprint(keys))
	if err != nil {
		return nil, err
	}
	defer p.kill()
	if _, err := p.await(ctx, "done", says("done")); err != nil {
		return nil, err
	}
	end, err := p.used()
	if err != nil {
		return nil, err
	}
	return b.figures(p.began, p.began, end), p.stop()
}

// runFloor is the program of the child.
func runFloor(ctx context.Context, _ *slog.Logger, args []string) error {
	var err error
	switch {
	case len(args) == 6 && args[1] == copyFloor:
		err = copyRecords(ctx, args[2], args[3], args[4], args[5])
	case len(args) == 5 && args[1] == pebbleFloor:
		var records, keys int
		if _, err := fmt.Sscan(args[3]+" "+args[4], &records, &keys); err != nil {
			return err
		}
		err = countInPebble(ctx, args[2], records, keys)
	default:
		return fmt.Errorf("%s is for the benchmark itself", floorCommand)
	}
	if errors.Is(err, context.Canceled) {
		return nil // stopped as asked
	}
	return err
}

// copyRecords consumes a topic from its beginning, produces a record of the same key and 8 bytes for each one, and commits
// what is acknowledged in the usual interval. It goes on until it is stopped.
func copyRecords(ctx context.Context, brokers, from, to, group string) error {
	consumer, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.ConsumeTopics(from), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.DefaultProduceTopic(to), kgo.MaxBufferedRecords(200_000),
		kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer producer.Close()
	admin := kadm.NewClient(producer)
	var failed error
	promise := func(_ *kgo.Record, err error) { // promises are called one at a time
		if err != nil {
			failed = err
		}
	}
	value := make([]byte, 8)
	read, last := kadm.Offsets{}, time.Now()
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, shortCommit)
		fetches := consumer.PollFetches(bounded)
		cancel()
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			out := make([]kgo.Record, len(p.Records))
			for i, r := range p.Records {
				out[i] = kgo.Record{Key: r.Key, Value: value}
				producer.Produce(ctx, &out[i], promise)
			}
			if n := len(p.Records); n > 0 {
				read.AddOffset(p.Topic, p.Partition, p.Records[n-1].Offset+1, -1)
			}
		})
		if len(read) == 0 || time.Since(last) < shortCommit {
			continue
		}
		if err := producer.Flush(ctx); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
		if err := admin.CommitAllOffsets(ctx, group, read); err != nil {
			return err
		}
		read, last = kadm.Offsets{}, time.Now()
	}
	return ctx.Err()
}

// pebbleBatch is how many records go into one batch.
const pebbleBatch = 20_000

// countInPebble counts the keys of a load in one database: each batch is folded in memory, then each of its keys is read
// and written. Then it waits until it is stopped.
func countInPebble(ctx context.Context, dir string, records, keys int) error {
	cache := pebble.NewCache(128 << 20)
	defer cache.Unref()
	db, err := pebble.Open(dir, &pebble.Options{DisableWAL: true, Cache: cache, MemTableSize: 64 << 20})
	if err != nil {
		return err
	}
	names, draw := keyNames(keys), draws(keys)
	added := make(map[int]int64, pebbleBatch)
	for done := 0; done < records && err == nil && ctx.Err() == nil; {
		n := min(pebbleBatch, records-done)
		for range n {
			added[draw()]++
		}
		err = addTo(db, names, added)
		clear(added)
		done += n
	}
	if err == nil && ctx.Err() == nil {
		fmt.Println("done")
		<-ctx.Done()
	}
	return errors.Join(err, db.Close())
}

func addTo(db *pebble.DB, names [][]byte, added map[int]int64) error {
	batch := db.NewBatchWithSize(len(added) * 32)
	for k, n := range added {
		stored, closer, err := db.Get(names[k])
		switch {
		case errors.Is(err, pebble.ErrNotFound):
		case err != nil:
			return errors.Join(err, batch.Close())
		default:
			count, _ := countOf(stored)
			n += count
			if err := closer.Close(); err != nil {
				return errors.Join(err, batch.Close())
			}
		}
		if err := batch.Set(names[k], peer{}.stored(n, time.Time{}), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return batch.Commit(pebble.NoSync)
}
