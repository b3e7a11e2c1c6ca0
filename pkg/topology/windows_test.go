package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// windowKinds are windows of all kinds, with a place for the grace.
var windowKinds = []string{"tumbling: 10ms", "hopping: 10ms, every: 3ms", "hopping: 10ms, every: 10ms", "sliding: 10ms", "session: 4ms"}

// event is a record of a test: its value is its weight.
type event struct {
	key    string
	ts     int64
	weight int64
}

func (e event) record(topic string) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: []byte(e.key), Value: intBytes(e.weight), Timestamp: time.UnixMilli(e.ts)}
}

func intBytes(n int64) []byte { return parseData(fmt.Sprintf("i:%d", n)) }

func randomEvents(rng *rand.Rand, n int, span int64) []event {
	out := make([]event, n)
	for i := range out {
		out[i] = event{key: string(rune('a' + rng.IntN(4))), ts: rng.Int64N(span), weight: 1 << rng.IntN(30)}
	}
	return out
}

// naiveWindows are the sums of all windows, made from all events at once.
func naiveWindows(spec window.Spec, events []event) map[string]int64 {
	out := make(map[string]int64)
	byKey := make(map[string][]event)
	for _, e := range events {
		byKey[e.key] = append(byKey[e.key], e)
	}
	for key, list := range byKey {
		slices.SortFunc(list, func(a, b event) int { return int(a.ts - b.ts) })
		for _, b := range naiveBounds(spec, list) {
			sum, some := int64(0), false
			for _, e := range list {
				if b.Start <= e.ts && (e.ts < b.End || e.ts == b.End && (spec.Kind == window.Sliding || spec.Kind == window.Session)) {
					sum, some = sum+e.weight, true
				}
			}
			if some {
				out[fmt.Sprintf("%s@%d/%d", key, b.Start, b.End)] = sum
			}
		}
	}
	return out
}

// naiveBounds are the windows that there may be for the events of one key, in order of time.
func naiveBounds(spec window.Spec, list []event) (out []window.Bounds) {
	switch spec.Kind {
	case window.Sliding:
		for _, e := range list {
			start := max(0, e.ts-spec.Size)
			out = append(out, window.Bounds{Start: start, End: start + spec.Size}, window.Bounds{Start: e.ts + 1, End: e.ts + 1 + spec.Size})
		}
	case window.Session:
		for _, e := range list {
			if n := len(out); n > 0 && e.ts-out[n-1].End <= spec.Size {
				out[n-1].End = e.ts
			} else {
				out = append(out, window.Bounds{Start: e.ts, End: e.ts})
			}
		}
	default:
		for start := int64(0); start <= list[len(list)-1].ts; start += spec.Advance {
			out = append(out, window.Bounds{Start: start, End: start + spec.Size})
		}
	}
	return out
}

// windowRun processes events with windows of one kind.
type windowRun struct {
	t     *testing.T
	sub   *Subtopology
	store changedStore
	p     *Processor
	out   []string         // key@start/end=value at ts
	table map[string]int64 // the last value of each window
}

func newWindowRun(t *testing.T, src string) *windowRun {
	r := &windowRun{t: t, sub: parse(t, src).Subtopologies[0], store: newChangedStore(), table: make(map[string]int64)}
	r.restart()
	return r
}

// restart makes a new processor on the same store.
func (r *windowRun) restart() {
	var stores []Store
	for range r.sub.Stores {
		stores = append(stores, r.store)
	}
	p, err := r.sub.NewProcessor(stores, emitFunc(r.emit))
	if err != nil {
		r.t.Fatal(err)
	}
	r.p = p
}

func (r *windowRun) emit(rec *kgo.Record) {
	key, b, ok := r.sub.Stores[0].Window.ParseKey(rec.Key)
	if !ok || rec.Partition != -2-int32(len(key)) {
		r.t.Errorf("key %x, partition %d", rec.Key, rec.Partition)
	}
	at := fmt.Sprintf("%s@%d/%d", key, b.Start, b.End)
	r.out = append(r.out, fmt.Sprintf("%s=%s at %d", at, printData(rec.Value, Int), rec.Timestamp.UnixMilli()))
	if rec.Value == nil {
		delete(r.table, at)
		return
	}
	d, _ := decodeDatum(Int, rec.Value, false)
	r.table[at] = d.int()
}

func (r *windowRun) process(e event) error {
	return r.p.Process(0, []*kgo.Record{e.record("in")})
}

func windowSource(kind, grace, emit string) string {
	return fmt.Sprintf("streams:\n  - name: s\n    from: {topic: in, value: int, on_error: skip}\n    steps:\n"+
		"      - sum: {store: sums, window: {%s, grace: %s}, emit: %s}\n      - to: {topic: out, value: int}\n", kind, grace, emit)
}

// TestWindowsAreThoseOfABatch processes events in random order, none of which is late: in the end each window holds what it does
// if all events are looked at together. A processor that ends in between makes no difference.
func TestWindowsAreThoseOfABatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, kind := range windowKinds {
		for _, emit := range []string{"update", "commit", "close"} {
			for range 10 {
				r := newWindowRun(t, windowSource(kind, "100ms", emit))
				events := randomEvents(rng, 1+rng.IntN(60), 95)
				for _, e := range events {
					if rng.IntN(10) == 0 && emit != "commit" {
						r.restart()
					}
					if err := r.process(e); err != nil {
						t.Fatal(err)
					}
					if rng.IntN(10) == 0 {
						r.commit()
					}
				}
				r.commit()
				if emit == "close" {
					if len(r.out) > 0 {
						t.Fatalf("%s: %v before anything is closed", kind, r.out)
					}
					if err := r.process(event{key: "z", ts: 10_000, weight: 1}); err != nil {
						t.Fatal(err)
					}
					if len(r.out) != len(r.table) {
						t.Fatalf("%s: a result is sent twice: %v", kind, r.out)
					}
					r.orderedByEnd()
				}
				if want := naiveWindows(*r.sub.Stores[0].Window, events); !maps.Equal(r.table, want) {
					t.Fatalf("%s, emit: %s of %v\ngot  %v\nwant %v", kind, emit, events, r.table, want)
				}
				if r.p.Late > 0 {
					t.Fatalf("%s: %d late records", kind, r.p.Late)
				}
			}
		}
	}
}

func (r *windowRun) commit() {
	if err := commit(r.p, r.sub, func(int) changedStore { return r.store }); err != nil {
		r.t.Fatal(err)
	}
}

// orderedByEnd wants results in order of the windows' ends, then keys.
func (r *windowRun) orderedByEnd() {
	place := func(s string) (int64, string) {
		var key string
		var start, end int64
		fmt.Sscanf(strings.NewReplacer("@", " ", "/", " ", "=", " ").Replace(s), "%s %d %d", &key, &start, &end)
		return end, key
	}
	for i := 1; i < len(r.out); i++ {
		end, key := place(r.out[i-1])
		if e, k := place(r.out[i]); e < end || e == end && k < key {
			r.t.Fatalf("%s comes after %s", r.out[i], r.out[i-1])
		}
	}
}

// TestWindowsCloseOnTime processes events that come more or less late. Each result on close is sent once, when stream time says
// so, and with all events that were not too late; what is left in the store in the end is what is open.
func TestWindowsCloseOnTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, kind := range windowKinds {
		for range 10 {
			grace := rng.Int64N(20)
			r := newWindowRun(t, windowSource(kind, fmt.Sprintf("%dms", grace), "close"))
			spec := *r.sub.Stores[0].Window
			var taken []event
			streamTime := int64(-1)
			for i := range 300 {
				e := event{key: string(rune('a' + rng.IntN(3))), ts: max(0, int64(i)-rng.Int64N(30)), weight: 1 << rng.IntN(30)}
				late, before := r.p.Late, len(r.out)
				if rng.IntN(20) == 0 {
					r.restart()
					late = 0
				}
				if err := r.process(e); err != nil {
					t.Fatal(err)
				}
				if r.p.Late == late {
					taken = append(taken, e)
				}
				streamTime = max(streamTime, e.ts)
				for _, s := range r.out[before:] {
					var key string
					var b window.Bounds
					fmt.Sscanf(strings.NewReplacer("@", " ", "/", " ", "=", " ").Replace(s), "%s %d %d", &key, &b.Start, &b.End)
					if !spec.Closed(b.End, streamTime) {
						t.Fatalf("%s: %s is sent at %d: too early", spec, s, streamTime)
					}
				}
			}
			if err := r.process(event{key: "z", ts: 10_000, weight: 1}); err != nil {
				t.Fatal(err)
			}
			r.orderedByEnd()
			if len(r.out) != len(r.table) {
				t.Fatalf("%s: a result is sent twice: %v", spec, r.out)
			}
			if spec.Kind == window.Tumbling { // of the others, a late event is in some windows
				if want := naiveWindows(spec, taken); !maps.Equal(r.table, want) {
					t.Fatalf("%s\ngot  %v\nwant %v", spec, r.table, want)
				}
			}
			for range 50 { // rows go bit by bit
				if err := r.process(event{key: "z", ts: 10_000, weight: 1}); err != nil {
					t.Fatal(err)
				}
			}
			for row := range r.store.mapStore {
				if key, b, ok := spec.ParseRow([]byte(row)); ok && string(key) != "z" {
					t.Fatalf("%s: window %s of %s is never deleted", spec, b, key)
				}
			}
		}
	}
}

// TestBadRecordsInWindows processes events of which some fail behind their windows, with and without them: stores and results
// have to be the same, and the failed ones must not have moved time.
func TestBadRecordsInWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, kind := range windowKinds {
		src := strings.Replace(windowSource(kind, "5ms", "update"), "      - to:", "      - map: 'value % 5 == 0 ? int(\"none\") : value'\n      - to:", 1)
		all, good := newWindowRun(t, src), newWindowRun(t, src)
		for i := range 800 {
			e := event{key: string(rune('a' + rng.IntN(3))), ts: max(0, int64(i)-rng.Int64N(12)), weight: 1 + rng.Int64N(7)}
			before := all.p.Skipped
			if err := all.process(e); err != nil {
				t.Fatal(err)
			}
			if all.p.Skipped > before {
				continue
			}
			if err := good.process(e); err != nil {
				t.Fatal(err)
			}
		}
		if all.p.Skipped < 50 || len(good.out) < 200 {
			t.Fatalf("%s: %d bad records, %d results", kind, all.p.Skipped, len(good.out))
		}
		if !slices.Equal(all.out, good.out) || all.p.Late != good.p.Late {
			t.Errorf("%s: results differ", kind)
		}
		if got, want := printStores([]Store{all.store.mapStore}), printStores([]Store{good.store.mapStore}); got != want {
			t.Errorf("%s: stores differ\n%s\n%s", kind, got, want)
		}
	}
}
