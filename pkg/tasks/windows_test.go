package tasks

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const windowStreams = `
- name: s
  from: {topic: in}
  steps:
    - count: {store: counts, window: {hopping: 100ms, every: 50ms, grace: 30ms}, emit: close}
    - rekey: key + " " + string(window_start)
    - to: {topic: out, value: int}
`

// TestWindowsAcrossOwners gives a task away and takes it back in the middle of windows: stream time and the windows go with it.
func TestWindowsAcrossOwners(t *testing.T) {
	r := newRig(t, windowStreams, 1).start()
	want := map[string]int64{}
	sent := int64(0)
	send := func(key string, ts int64) {
		t.Helper()
		rec := &kgo.Record{Topic: "in", Key: []byte(key), Value: []byte("v"), Timestamp: time.UnixMilli(ts)}
		if err := r.client.ProduceSync(context.Background(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	const last = 1000
	for ts := int64(0); ts < last; ts += 7 {
		generation := int32(1 + 2*(ts/70))
		if ts%70 == 0 {
			r.plan(generation, own(id(0)))
		}
		at := max(0, ts-ts%3*10) // some are late, within grace
		key := fmt.Sprint("k", ts%2)
		send(key, at)
		for start := max(0, at-50) / 50 * 50; start <= at; start += 50 {
			want[fmt.Sprintf("%s %d", key, start)]++
		}
		if ts%70 == 63 {
			r.awaitCommitted(0, sent)
			r.plan(generation+1, releaseOf(id(0), generation+1))
			r.awaitReleased(int(generation+1) / 2)
		}
	}
	r.plan(999, own(id(0)))
	send("end", 10_000)
	r.awaitCommitted(0, sent)
	got, records := r.values("out")
	if !maps.Equal(got, want) || records != len(want) {
		t.Errorf("%d results\n%v\nwant %d\n%v", records, got, len(want), want)
	}
}

// awaitReleased waits until so many releases are acknowledged.
func (r *rig) awaitReleased(n int) {
	r.t.Helper()
	r.await("the task is released", func() bool {
		r.events.Lock()
		defer r.events.Unlock()
		return len(r.events.released) >= n
	})
}

// values reads a topic of numbers to its end: the last one of each key, and how many there are.
func (r *rig) values(topic string) (last map[string]int64, n int) {
	r.t.Helper()
	ends, err := r.adm.ListEndOffsets(context.Background(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	o, _ := ends.Lookup(topic, 0)
	cl := r.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	last = map[string]int64{}
	for int64(n) < o.Offset {
		cl.PollFetches(context.Background()).EachRecord(func(rec *kgo.Record) {
			last[string(rec.Key)] = int64(binary.BigEndian.Uint64(rec.Value))
			n++
		})
	}
	return last, n
}
