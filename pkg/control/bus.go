package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Bus reads and writes the control topic of one application.
type Bus struct {
	cl    *kgo.Client
	topic string
	log   *slog.Logger
}

// NewBus uses a client that was made with Opts among its options, and leaves closing it to the caller.
// While Run tails the topic, other reads by the same client wait behind its fetches for up to a second.
func NewBus(cl *kgo.Client, app string, logger *slog.Logger) *Bus {
	return &Bus{cl: cl, topic: TopicName(app), log: logger.With("component", "control")}
}

// PutMark asks a run of an instance to leave. It returns when Kafka has the mark.
func (b *Bus) PutMark(ctx context.Context, m Mark) error { return b.PutMarks(ctx, m) }

// PutMarks asks runs of several instances to leave, in one write: they hear of it together, so that none is taken for one that
// stays when the tasks of the others are given out. After an error some of the marks may be there.
func (b *Bus) PutMarks(ctx context.Context, marks ...Mark) error {
	records := make([]*kgo.Record, len(marks))
	for i, m := range marks {
		m.Version = version
		r, err := encode(b.topic, ordersPartition, kindMark, m.Instance, m)
		if err != nil {
			return err
		}
		records[i] = r
	}
	return b.produce(ctx, records...)
}

// Cancel takes the mark of a run of an instance back. The run itself does the same when it has left.
func (b *Bus) Cancel(ctx context.Context, instance string, inc assign.Incarnation) error {
	if instance == "" {
		return errors.New("a cancellation needs an instance id")
	}
	return b.produce(ctx, tombstone(b.topic, instance, inc))
}

// Hello tells the other instances that a run is about to join, so that they rejoin at once.
func (b *Bus) Hello(ctx context.Context, h Hello) error {
	h.Version = version
	return b.put(ctx, ordersPartition, kindHello, h.Instance, h)
}

// PutStatus publishes the status of an instance. Without an UpdatedMs it is of now.
func (b *Bus) PutStatus(ctx context.Context, s Status) error {
	s.Version = version
	if s.UpdatedMs == 0 {
		s.UpdatedMs = time.Now().UnixMilli()
	}
	return b.put(ctx, statusPartition, kindStatus, s.Instance, s)
}

// PutStore records the definition of a store. Records are forgotten after the topic's retention.ms, a week by default: an
// application that runs repeats them.
func (b *Bus) PutStore(ctx context.Context, s Store) error {
	s.Version = version
	return b.put(ctx, ordersPartition, kindStore, s.Name, s)
}

// ReadStores returns the last record of every store, in order of name.
func (b *Bus) ReadStores(ctx context.Context) ([]Store, error) {
	return readLatest(ctx, b, ordersPartition, kindStore, decodeStore)
}

func (b *Bus) put(ctx context.Context, partition int32, kind, instance string, value any) error {
	r, err := encode(b.topic, partition, kind, instance, value)
	if err != nil {
		return err
	}
	return b.produce(ctx, r)
}

func (b *Bus) produce(ctx context.Context, records ...*kgo.Record) error {
	if err := b.cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("write to topic %s: %w", b.topic, err)
	}
	return nil
}

// ReadStatuses returns the last status of every instance that has one, in order of instance id, gone
// instances included: see Status.Stale.
func (b *Bus) ReadStatuses(ctx context.Context) ([]Status, error) {
	return readLatest(ctx, b, statusPartition, kindStatus, decodeStatus)
}

// ReadMarks returns the marks in force, in order of instance id.
func (b *Bus) ReadMarks(ctx context.Context) ([]Mark, error) {
	return readLatest(ctx, b, ordersPartition, kindMark, decodeMark)
}

// readLatest reads a partition to where it ended at the call, and decodes the last value of each key.
func readLatest[T any](ctx context.Context, b *Bus, partition int32, kind string, decode func(*kgo.Record, string) (T, error)) ([]T, error) {
	records, err := b.readAll(ctx, partition)
	if err != nil {
		return nil, err
	}
	var out []T
	for _, r := range records {
		k, instance, err := splitKey(r.Key)
		if err != nil {
			b.skip(r, err)
			continue
		}
		if k != kind || r.Value == nil {
			continue
		}
		v, err := decode(r, instance)
		if err != nil {
			b.skip(r, err)
			continue
		}
		out = append(out, v)
	}
	return out, nil
}

// readAll returns the last record of every key up to the present end of the partition, in order of key.
func (b *Bus) readAll(ctx context.Context, partition int32) ([]*kgo.Record, error) {
	c, end, err := b.cursorFromStart(ctx, partition)
	if err != nil {
		return nil, err
	}
	records, err := c.readTo(ctx, end)
	if errors.Is(err, errGone) { // deleted between the question and the read: the log starts later now
		if c, end, err = b.cursorFromStart(ctx, partition); err == nil {
			records, err = c.readTo(ctx, end)
		}
	}
	return records, err
}

// skip passes over a record that means nothing to this version.
func (b *Bus) skip(r *kgo.Record, err error) {
	b.log.Warn("skipped a record of the control topic", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
		"key", fmt.Sprintf("%.60q", r.Key), "error", err)
}

// Publish repeats the status that snapshot gives, soon after it changes and every 10 s, until ctx ends.
// Snapshot is called ten times a second; it must not block.
func (b *Bus) Publish(ctx context.Context, snapshot func() Status) error {
	tick := time.NewTicker(minInterval)
	defer tick.Stop()
	var (
		last   *Status
		lastAt time.Time
		failed bool
	)
	for {
		if s := snapshot(); due(last, s, time.Since(lastAt)) {
			bounded, cancel := context.WithTimeout(ctx, heartbeat/2)
			err := b.PutStatus(bounded, s)
			cancel()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil && !failed {
				b.log.Warn("the status cannot be published: commands on other hosts see an old one or none", "error", err)
			}
			failed = err != nil
			last, lastAt = &s, time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
