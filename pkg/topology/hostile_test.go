package topology

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// TestTimestampsBeyondAllTime: windows and joins refuse times at which theirs would overflow, before anything is written. Without
// that, the windows of one record would never end.
func TestTimestampsBeyondAllTime(t *testing.T) {
	out := []int64{math.MinInt64, -1, window.MaxTime + 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, kind := range windowKinds {
		for _, emit := range []string{"update", "commit", "close"} {
			r := newWindowRun(t, windowSource(kind, "5ms", emit))
			for i, ts := range out {
				if err := r.process(event{"a", ts, 1}); err != nil || r.p.Skipped != uint64(i+1) {
					t.Fatalf("%s, %s: record at %d: %v, %d skipped", kind, emit, ts, err, r.p.Skipped)
				}
			}
			if n := len(r.store.mapStore); n != 0 {
				t.Errorf("%s, %s: %d rows are left", kind, emit, n)
			}
			for _, ts := range []int64{0, window.MaxTime} {
				if err := r.process(event{"a", ts, 1}); err != nil || r.p.Skipped != uint64(len(out)) {
					t.Errorf("%s, %s: record at %d: %v, %d skipped", kind, emit, ts, err, r.p.Skipped)
				}
			}
		}
	}
}

func TestTimestampsBeyondAllTimeInJoins(t *testing.T) {
	r := newJoinRun(t, `
streams:
  - {name: right, from: {topic: right, value: int, on_error: skip}, steps: []}
  - name: left
    from: {topic: left, value: int, on_error: skip}
    steps:
      - join: {stream: right, within: 10ms, grace: 5ms, type: outer, value: 'string(value ?? 0) + "|" + string(other ?? 0)'}
      - to: out
`)
	for i, ts := range []int64{math.MinInt64, -1, window.MaxTime + 1, math.MaxInt64 - 1, math.MaxInt64} {
		for side, topic := range r.sub.Topics() {
			if err := r.p.Process(side, []*kgo.Record{event{"a", ts, 1}.record(topic)}); err != nil || r.p.Skipped != uint64(2*i+side+1) {
				t.Fatalf("record at %d: %v, %d skipped", ts, err, r.p.Skipped)
			}
		}
	}
	for _, s := range r.stores {
		if n := len(s.(mapStore)); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	}
}

// TestManySessionsCostNoMore: what a record looks at does not grow with the sessions that its key has.
func TestManySessionsCostNoMore(t *testing.T) {
	for _, emit := range []string{"update", "close"} {
		sub := parse(t, windowSource("session: 4ms", "1000000ms", emit)).Subtopologies[0]
		store := &countedStore{mapStore: make(mapStore)}
		p, err := sub.NewProcessor([]Store{store}, emitFunc(func(*kgo.Record) {}))
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for i := range int64(500) {
			store.seen = 0
			ts := 10 * (i * 199 % 500) // in no order
			if err := p.Process(0, []*kgo.Record{event{"a", ts, 1}.record("in")}); err != nil {
				t.Fatal(err)
			}
			most = max(most, store.seen)
		}
		if most > 4 {
			t.Errorf("emit: %s: a record has looked at %d rows", emit, most)
		}
	}
}

// TestBadRecordsLookAtNoMore: a record that fails behind a window, and so is taken back, makes the next one look for what is over
// anew; that does not mean all that is there.
func TestBadRecordsLookAtNoMore(t *testing.T) {
	for _, kind := range windowKinds {
		sub := parse(t, "streams:\n  - name: s\n    from: {topic: in, value: int, on_error: skip}\n    steps:\n"+
			"      - sum: {store: sums, window: {"+kind+", grace: 100000ms}}\n      - map: 1 % value\n      - to: {topic: out, value: int}\n").Subtopologies[0]
		store := &countedStore{mapStore: make(mapStore)}
		p, err := sub.NewProcessor([]Store{store}, emitFunc(func(*kgo.Record) {}))
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for i := range int64(400) {
			store.seen = 0
			e := event{"a", 40 * i, i % 2} // each second one fails
			if err := p.Process(0, []*kgo.Record{e.record("in")}); err != nil {
				t.Fatal(err)
			}
			most = max(most, store.seen)
		}
		if most > 8 || p.Skipped != 200 {
			t.Errorf("%s: a record has looked at %d rows, %d skipped", kind, most, p.Skipped)
		}
	}
}

// countedStore counts the rows that scans hand out.
type countedStore struct {
	mapStore
	seen int
}

func (s *countedStore) Scan(from, to []byte, f func(key, value []byte) bool) error {
	return s.mapStore.Scan(from, to, func(key, value []byte) bool {
		s.seen++
		return f(key, value)
	})
}
