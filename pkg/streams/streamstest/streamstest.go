package streamstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
	"github.com/streamworker/streamworker/pkg/topology/window"
)

// Start runs what a function builds without Kafka, until the test ends. It fails the test if the topology has mistakes.
func Start(t testing.TB, build func(*streams.Builder)) *topologytest.Driver {
	t.Helper()
	b := streams.New()
	build(b)
	top, err := b.Topology("app")
	if err != nil {
		t.Fatal(err)
	}
	d, err := topologytest.New(topologytest.Config{Topology: top})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Input is a topic that the test writes.
type Input[K, V any] struct {
	d     *topologytest.Driver
	topic string
	key   streams.Serde[K]
	value streams.Serde[V]
}

// NewInput makes an input.
func NewInput[K, V any](d *topologytest.Driver, topic string, key streams.Serde[K], value streams.Serde[V]) *Input[K, V] {
	return &Input[K, V]{d, topic, key, value}
}

// Pipe processes a record with a timestamp in ms since the epoch, and all that follows from it.
func (in *Input[K, V]) Pipe(key K, value V, timestamp int64) error {
	rec := &kgo.Record{Topic: in.topic, Timestamp: time.UnixMilli(timestamp)}
	var err error
	if rec.Key, err = in.key.EncodeKey(key); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if rec.Value, err = in.value.Encode(value); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return in.d.PipeRaw(rec)
}

// Output is a record that was written.
type Output[K, V any] struct {
	Key       K
	Value     V
	NullValue bool
	Timestamp int64 // ms since the epoch
}

// Read returns all that was written to a topic so far. Its keys have no windows.
func Read[K, V any](d *topologytest.Driver, topic string, key streams.Serde[K], value streams.Serde[V]) ([]Output[K, V], error) {
	return read(d.WrittenRaw(topic), key, value)
}

func read[K, V any](recs []*kgo.Record, key streams.Serde[K], value streams.Serde[V]) ([]Output[K, V], error) {
	out := make([]Output[K, V], len(recs))
	for i, r := range recs {
		var err error
		if out[i].Key, err = key.Decode(r.Key); err != nil {
			return nil, fmt.Errorf("record %d, key: %w", i, err)
		}
		if out[i].Value, err = value.Decode(r.Value); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
		out[i].NullValue, out[i].Timestamp = r.Value == nil, r.Timestamp.UnixMilli()
	}
	return out, nil
}

// ReadWindowed is Read for keys with windows of a kind.
func ReadWindowed[K, V any](d *topologytest.Driver, topic string, key streams.Serde[K], value streams.Serde[V], of window.Spec) ([]Output[K, V], []window.Bounds, error) {
	var bounds []window.Bounds
	var plain []*kgo.Record
	for i, r := range d.WrittenRaw(topic) {
		k, b, ok := of.ParseKey(r.Key)
		if !ok {
			return nil, nil, fmt.Errorf("record %d has no window in its key", i)
		}
		copied := *r
		copied.Key = k
		plain, bounds = append(plain, &copied), append(bounds, b)
	}
	out, err := read(plain, key, value)
	return out, bounds, err
}
