package tasks

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// statefulStreams have steps whose state has an order of its own.
const statefulStreams = `
- name: sessions
  from: {topic: in}
  steps:
    - count: {window: {session: 30ms, grace: 20ms}, emit: close}
    - rekey: key + " session " + string(window_start)
    - to: {topic: out, value: int}
- name: sliding
  from: {topic: in}
  steps:
    - count: {window: {sliding: 20ms, grace: 10ms}}
    - rekey: key + " sliding " + string(window_start)
    - to: {topic: out, value: int}
- name: distinct
  from: {topic: in}
  steps:
    - dedupe: {within: 40ms, by: value}
    - count: {store: fresh, ttl: 50ms}
    - filter: value != nil
    - rekey: key + " fresh"
    - to: {topic: out, value: int}
- name: even
  from: {topic: in}
  steps: [filter: 'value == "a" or value == "b"']
- name: pairs
  from: {topic: in}
  steps:
    - join: {stream: even, within: 15ms, grace: 10ms, type: left, value: 'other == nil ? 0 : 1'}
    - rekey: key + " pair"
    - map: int(value)
    - to: {topic: out, value: int}
`

// TestStatefulStepsUnderExactlyOnce breaks the task, and gives it away and back, in the middle of windows and joins: the results are
// those of an undisturbed run.
func TestStatefulStepsUnderExactlyOnce(t *testing.T) {
	run := func(disturb bool) map[string][]int64 {
		rng := rand.New(rand.NewPCG(1, 2)) // the same records in both runs
		r := newTxnRig(t, statefulStreams, 1).start()
		generation := int32(1)
		r.plan(generation, own(id(0)))
		const rounds, each = 12, 25
		for round := range rounds {
			var recs []*kgo.Record
			for i := range each {
				now := int64(1000 + (round*each+i)*5)
				recs = append(recs, &kgo.Record{
					Topic: "in", Key: []byte{byte('k' + rng.IntN(3))}, Value: []byte{byte('a' + rng.IntN(4))},
					Timestamp: time.UnixMilli(now - rng.Int64N(25)),
				})
			}
			if err := r.client.ProduceSync(context.Background(), recs...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			switch {
			case !disturb:
			case round%3 == 0: // perhaps before, perhaps after the commit
				r.breakTask(id(0))
			case round%3 == 1:
				released := len(r.released())
				r.plan(generation+1, releaseOf(id(0), generation+1))
				r.await("the task is released", func() bool { return len(r.released()) > released })
				r.plan(generation+2, own(id(0)))
				generation += 2
			}
			r.awaitOffset(0, int64((round+1)*each))
		}
		r.end()
		return r.outputs()
	}
	want, got := run(false), run(true)
	if len(want) < 50 {
		t.Fatalf("results of %d keys", len(want))
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if !slices.Equal(got[key], want[key]) {
				t.Errorf("%s: %v, want %v", key, got[key], want[key])
			}
		}
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
}

func (r *rig) released() []ReleaseInfo {
	r.events.Lock()
	defer r.events.Unlock()
	return slices.Clone(r.events.released)
}
