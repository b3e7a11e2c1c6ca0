package harness

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Watch reads the application's output as it comes: the last count of each key, and when it came.
type Watch struct {
	t  testing.TB
	of []int32 // partition of the input by key

	mu       sync.Mutex
	last     []int64 // count by key
	records  int64
	repeated int64       // records that told nothing new: the count was not above the one before
	skipped  int64       // records that told more than one more
	arrived  []time.Time // last arrival by input partition
	pauses   []time.Duration
	slowest  []time.Duration
	garbage  string
}

// NewWatch starts reading the output, as far as it is committed, from its beginning until the test ends.
func NewWatch(t testing.TB, a *App, keys int) *Watch {
	t.Helper()
	w := &Watch{
		t: t, of: partitionsOf(keys, a.Partitions), last: make([]int64, keys), arrived: make([]time.Time, a.Partitions),
		pauses: make([]time.Duration, a.Partitions), slowest: make([]time.Duration, a.Partitions),
	}
	client := a.Kafka.Client(t, kgo.ConsumeTopics(a.Output()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond), kgo.FetchMinBytes(1))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.take(client.PollFetches(ctx), time.Now())
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *Watch) take(fetches kgo.Fetches, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		key, ok := keyIndex(r.Key)
		if !ok || key >= len(w.last) || len(r.Value) != 8 {
			w.garbage = fmt.Sprintf("key %q, value %q in partition %d at offset %d", r.Key, r.Value, r.Partition, r.Offset)
			return
		}
		count := int64(binary.BigEndian.Uint64(r.Value))
		switch {
		case count <= w.last[key]:
			w.repeated++
		case count > w.last[key]+1:
			w.skipped++
		}
		w.last[key] = count
		w.records++
		p := w.of[key]
		if !w.arrived[p].IsZero() {
			w.pauses[p] = max(w.pauses[p], now.Sub(w.arrived[p]))
		}
		w.arrived[p] = now
		w.slowest[p] = max(w.slowest[p], now.Sub(r.Timestamp))
	})
}

// Reset starts a new period for Pauses and Slowest.
func (w *Watch) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for p := range w.arrived {
		w.arrived[p] = now
	}
	clear(w.pauses)
	clear(w.slowest)
}

// Pauses is, by input partition, the longest time in this period in which no output came.
func (w *Watch) Pauses() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.pauses...)
}

// Flows says whether output of every input partition has come after a time.
func (w *Watch) Flows(after time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.arrived, func(at time.Time) bool { return !at.After(after) })
}

// Slowest is, by input partition, the longest time from a record's production to the arrival of its result here.
func (w *Watch) Slowest() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.slowest...)
}

// Difference is how the output differs from what was sent.
type Difference struct {
	Below, Above         int64 // records missing from, and too many in the counts
	Repeated, Skipped    int64 // output records that tell no more than the one before, or more than one more
	AbovePartitions      map[int32]int64
	Example, BelowSample string
}

// Compare compares the output so far with the load's table. The load must be at rest.
func (w *Watch) Compare(l *Load) Difference {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.garbage != "" {
		w.t.Fatalf("the output has a record that nothing led to: %s", w.garbage)
	}
	d := Difference{Repeated: w.repeated, Skipped: w.skipped, AbovePartitions: map[int32]int64{}}
	for key, want := range l.counts {
		switch have := w.last[key]; {
		case have < want:
			d.Below += want - have
			d.BelowSample = fmt.Sprintf("%s: %d of %d", Key(key), have, want)
		case have > want:
			d.Above += have - want
			d.AbovePartitions[w.of[key]] += have - want
			d.Example = fmt.Sprintf("%s: %d instead of %d", Key(key), have, want)
		}
	}
	return d
}

// settle is how long nothing may change before the output counts as final.
const settle = time.Second

// AwaitFinal waits until no record is missing any more and nothing else comes, and returns what is too much.
func (w *Watch) AwaitFinal(l *Load, limit time.Duration) Difference {
	w.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		d := w.Compare(l)
		if d.Below == 0 {
			before := w.count()
			time.Sleep(settle)
			if w.count() == before {
				return w.Compare(l)
			}
			continue
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %v %d records are still missing in the counts (e.g. %s), %d are too many", limit, d.Below, d.BelowSample, d.Above)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// AwaitExact waits for the final output and fails the test unless every count is right and every output record
// told exactly one more than the one before.
func (w *Watch) AwaitExact(l *Load, limit time.Duration) {
	w.t.Helper()
	d := w.AwaitFinal(l, limit)
	if d.Above != 0 || d.Repeated != 0 || d.Skipped != 0 {
		w.t.Errorf("counts are %d too high (e.g. %s), %d output records repeat, %d skip: want exact counts", d.Above, d.Example, d.Repeated, d.Skipped)
	}
	w.t.Logf("exact: %d records sent, %d keys, %d output records", l.Sent(), l.Keys, w.count())
}

// AwaitComplete waits for the final output after a crash: nothing may be missing; only the given partitions, those
// of the crashed instance, may have been counted again from their last commit.
func (w *Watch) AwaitComplete(l *Load, limit time.Duration, crashed ...int32) {
	w.t.Helper()
	d := w.AwaitFinal(l, limit)
	for _, p := range crashed {
		delete(d.AbovePartitions, p)
	}
	if len(d.AbovePartitions) > 0 {
		w.t.Errorf("counts of partitions that were not touched are too high, by partition: %v", d.AbovePartitions)
	}
	w.t.Logf("complete: %d records sent, %d counted again after the crash", l.Sent(), d.Above)
}

func (w *Watch) count() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records
}
