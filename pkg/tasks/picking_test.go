package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestPickByTimestamp has all records at hand: each one processed has the least timestamp among the next ones of all sources,
// the first source's of equal ones.
func TestPickByTimestamp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := newPicking(1 + rng.IntN(4))
		offsets := make([]int64, len(p.sources))
		var left [][]*kgo.Record
		total := 0
		for i := range p.sources {
			b := inputBatch{source: i}
			for o := range rng.IntN(2 * chunkSize) {
				b.records = append(b.records, &kgo.Record{Offset: int64(o), Timestamp: time.UnixMilli(rng.Int64N(50) + int64(o)/3)})
			}
			if b.end = int64(len(b.records)); b.end > 0 {
				p.sources[i].take(b)
			}
			p.sources[i].end = b.end
			left, total = append(left, b.records), total+len(b.records)
		}
		for total > 0 {
			s, n := p.pick(offsets, time.Time{})
			if s < 0 || n == 0 || n > chunkSize {
				t.Fatalf("%d records of source %d, %d are left", n, s, total)
			}
			for range n {
				want := -1
				for i := range left {
					if len(left[i]) > 0 && (want < 0 || left[i][0].Timestamp.Before(left[want][0].Timestamp)) {
						want = i
					}
				}
				if want != s {
					t.Fatalf("source %d, want %d", s, want)
				}
				left[s] = left[s][1:]
			}
			offsets[s] += int64(n)
			p.sources[s].batch.records = p.sources[s].batch.records[n:]
			total -= n
		}
		if s, _ := p.pick(offsets, time.Time{}); s >= 0 || !p.until.IsZero() || !p.empty() {
			t.Fatalf("nothing is left, but picked %d, waits until %v", s, p.until)
		}
	}
}

// TestPickWaits is about a source that has nothing at hand.
func TestPickWaits(t *testing.T) {
	now := time.UnixMilli(1000)
	batch := func(end int64, offsets ...int64) inputBatch {
		b := inputBatch{end: end}
		for _, o := range offsets {
			b.records = append(b.records, &kgo.Record{Offset: o, Timestamp: now})
		}
		return b
	}
	for _, c := range []struct {
		name string
		end  int64 // of the source without records, which is at 5
		wait time.Duration
	}{
		{"at its end", 5, 0}, {"its end is not known", -1, sourceWait}, {"its log goes on", 100, sourceWait}, {"perhaps only marks are left", 6, markersWait},
	} {
		p := newPicking(2)
		p.sources[0].take(batch(3, 0, 1))
		p.sources[1].end = c.end
		offsets := []int64{0, 5}
		s, n := p.pick(offsets, now)
		if c.wait == 0 {
			if s != 0 || n != 2 {
				t.Errorf("%s: %d records of %d, want 2 of 0", c.name, n, s)
			}
			continue
		}
		if s >= 0 || !p.until.Equal(now.Add(c.wait)) {
			t.Errorf("%s: picked %d, waits until %v, want %v", c.name, s, p.until.Sub(now), c.wait)
		}
		if s, _ := p.pick(offsets, now.Add(c.wait-1)); s >= 0 {
			t.Errorf("%s: it does not wait any more", c.name)
		}
		if s, n := p.pick(offsets, now.Add(c.wait)); s != 0 || n != 2 {
			t.Errorf("%s: %d records of %d after the wait, want 2 of 0", c.name, n, s)
		}
		if s, _ := p.pick(offsets, now.Add(c.wait)); s != 0 {
			t.Errorf("%s: it waits once more without news", c.name)
		}
		p.sources[1].take(batch(200, 5))
		p.sources[1].batch.records = nil
		if s, _ := p.pick([]int64{0, 6}, now.Add(time.Hour)); s >= 0 {
			t.Errorf("%s: it does not wait although the source has brought something", c.name)
		}
	}
}

// What two topics hold when a task starts is processed in order of time, whatever the order in which it comes in.
func TestBacklogOfTwoSourcesByTime(t *testing.T) {
	const streams = `
- {name: a, from: {topic: in}, steps: [filter: value != ""]}
- {name: b, from: {topic: in2}, steps: [filter: value != ""]}
- {name: both, from: {streams: [a, b]}, steps: [to: out]}
`
	r := newRig(t, streams, 1)
	var recs []*kgo.Record
	for i := range 3000 {
		topic := "in"
		if i%7 < 3 {
			topic = "in2"
		}
		recs = append(recs, &kgo.Record{Topic: topic, Key: []byte("k"), Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(int64(i))})
	}
	if err := r.client.ProduceSync(context.Background(), recs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.plan(1, own(id(0)))
	r.await("everything is processed", func() bool { return r.ledger.offset("in", 0)+r.ledger.offset("in2", 0) == int64(len(recs)) })
	cl := r.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"out": {0: kgo.NewOffset().AtStart()}}))
	var got []string
	for len(got) < len(recs) {
		cl.PollFetches(context.Background()).EachRecord(func(rec *kgo.Record) { got = append(got, string(rec.Value)) })
	}
	var want []string
	for i := range recs {
		want = append(want, fmt.Sprint(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("out of order:\n%s", strings.Join(got, " "))
	}
}

// A source that others have kept out of a full inbox is let in alone.
func TestLetIn(t *testing.T) {
	var b inbox
	paused, resumed := 0, 0
	put := func(source, records int) {
		b.put(inputBatch{source: source, records: make([]*kgo.Record, records), bytes: records}, 1000, func() { paused++ })
	}
	b.letIn(1, func() { resumed++ })
	put(0, 1001)
	b.letIn(1, func() { resumed++ })
	b.letIn(1, func() { resumed++ })
	if paused != 1 || resumed != 1 {
		t.Fatalf("paused %d times, let in %d times, want 1 and 1", paused, resumed)
	}
	put(1, 10)
	if paused != 2 {
		t.Error("the source that was let in is not paused again")
	}
	if in, ok := b.nextOf(1, func() {}); !ok || in.source != 1 || len(in.records) != 10 {
		t.Errorf("got %d records of source %d", len(in.records), in.source)
	}
	if _, ok := b.nextOf(1, func() {}); ok {
		t.Error("there is nothing more of it")
	}
	if b.nextOf(0, func() { resumed++ }); resumed != 2 || !b.empty() {
		t.Errorf("resumed %d times, want 2", resumed)
	}
}
