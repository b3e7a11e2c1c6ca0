package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// joinRun processes records of a topology of one subtopology and keeps what comes out, as text.
type joinRun struct {
	t      *testing.T
	sub    *Subtopology
	stores []Store
	p      *Processor
	out    []string
	last   map[string]string // by key, of those that are no nulls
}

func newJoinRun(t *testing.T, src string) *joinRun {
	top := parse(t, src)
	if len(top.Subtopologies) != 1 {
		t.Fatalf("%d subtopologies", len(top.Subtopologies))
	}
	r := &joinRun{t: t, sub: top.Subtopologies[0], last: make(map[string]string)}
	for range r.sub.Stores {
		r.stores = append(r.stores, make(mapStore))
	}
	r.restart()
	return r
}

// restart makes a new processor on the same stores.
func (r *joinRun) restart() {
	p, err := r.sub.NewProcessor(r.stores, emitFunc(func(rec *kgo.Record) {
		value := printData(rec.Value, JSON)
		r.out = append(r.out, fmt.Sprintf("%s=%s at %d", rec.Key, value, rec.Timestamp.UnixMilli()))
		if delete(r.last, string(rec.Key)); rec.Value != nil {
			r.last[string(rec.Key)] = value
		}
	}))
	if err != nil {
		r.t.Fatal(err)
	}
	r.p = p
}

// process processes a record; a weight of 0 makes it a null.
func (r *joinRun) process(topic string, e event) {
	rec := e.record(topic)
	if e.weight == 0 {
		rec.Value = nil
	}
	if err := r.p.Process(slices.Index(r.sub.Topics(), topic), []*kgo.Record{rec}); err != nil {
		r.t.Fatal(err)
	}
}

// TestStreamJoinsAreThoseOfABatch joins records that come in random order, none of which is forgotten: there is a result for each
// pair within the window, once, and one for each record without a counterpart where the kind of join says so. A processor
// that ends in between makes no difference.
func TestStreamJoinsAreThoseOfABatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, kind := range joinKinds {
		for range 40 {
			const before, after = 7, 4
			r := newJoinRun(t, fmt.Sprintf(`
streams:
  - {name: b, from: {topic: b, value: int, on_error: skip}, steps: [map: value]}
  - name: a
    from: {topic: a, value: int, on_error: skip}
    steps:
      - join: {stream: b, before: %dms, after: %dms, grace: 50ms, type: %s, value: '[value, other]'}
      - to: {topic: out, value: json}
`, before, after, kind))
			sides := map[string][]event{"a": nil, "b": nil}
			for i := range rng.IntN(60) {
				topic := string(rune('a' + rng.IntN(2)))
				e := event{key: string(rune('x' + rng.IntN(2))), ts: rng.Int64N(50), weight: int64(i + 1)}
				sides[topic] = append(sides[topic], e)
				if rng.IntN(8) == 0 {
					r.restart()
				}
				r.process(topic, e)
			}
			r.process("a", event{key: "end", ts: 10_000, weight: 1})
			r.process("b", event{key: "end", ts: 10_000, weight: 1})
			var want []string
			matched := map[event]bool{}
			for _, a := range sides["a"] {
				for _, b := range sides["b"] {
					if a.key == b.key && a.ts-before <= b.ts && b.ts <= a.ts+after {
						matched[a], matched[b] = true, true
						want = append(want, fmt.Sprintf("%s=[%d,%d] at %d", a.key, a.weight, b.weight, max(a.ts, b.ts)))
					}
				}
			}
			for _, a := range sides["a"] {
				if !matched[a] && kind != "inner" {
					want = append(want, fmt.Sprintf("%s=[%d,null] at %d", a.key, a.weight, a.ts))
				}
			}
			for _, b := range sides["b"] {
				if !matched[b] && kind == "outer" {
					want = append(want, fmt.Sprintf("%s=[null,%d] at %d", b.key, b.weight, b.ts))
				}
			}
			want = append(want, "end=[1,1] at 10000")
			slices.Sort(want)
			got := slices.Sorted(slices.Values(r.out))
			if !slices.Equal(got, want) {
				t.Fatalf("%s join of %v:\ngot  %v\nwant %v", kind, sides, got, want)
			}
		}
	}
}

// Rows of a join of streams go when their time is over.
func TestStreamJoinForgets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r := newJoinRun(t, `
streams:
  - {name: b, from: {topic: b, value: int}, steps: [map: value]}
  - {name: a, from: {topic: a, value: int}, steps: [{join: {stream: b, within: 5ms, type: outer, value: '[value, other]'}}, {to: {topic: out, value: json}}]}
`)
	for i := range 3000 {
		r.process(string(rune('a'+rng.IntN(2))), event{key: string(rune('a' + rng.IntN(20))), ts: max(0, int64(i)-rng.Int64N(10)), weight: 1})
	}
	for i, s := range r.stores {
		if n := len(s.(mapStore)); n > 100 {
			t.Errorf("store %d has %d rows", i, n)
		}
	}
}

// TestTableJoinsAreThoseOfTheLastRows changes tables at random, rows to be deleted too: the last results are those of the last rows.
func TestTableJoinsAreThoseOfTheLastRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, kind := range joinKinds {
		r := newJoinRun(t, fmt.Sprintf(`
tables:
  - {name: a, from: {topic: a, value: int}}
  - {name: b, from: {topic: b, value: int}, steps: [filter: value %% 3 != 0]}
  - {name: c, from: {topic: c, value: int}}
  - {name: ab, from: {table: a}, steps: [join: {table: b, type: %s, value: '[value, other]'}]}
  - {name: abc, from: {table: ab}, steps: [{join: {table: c, type: %s, value: '[value, other]'}}, {to: {topic: out, value: json}}]}
`, kind, kind))
		tables := map[string]map[string]int64{"a": {}, "b": {}, "c": {}}
		for i := range 600 {
			e := event{key: string(rune('x' + rng.IntN(3))), ts: int64(i), weight: rng.Int64N(10)}
			topic := string(rune('a' + rng.IntN(3)))
			if rng.IntN(20) == 0 {
				r.restart()
			}
			if delete(tables[topic], e.key); e.weight > 0 && (topic != "b" || e.weight%3 != 0) {
				tables[topic][e.key] = e.weight
			}
			r.process(topic, e)
			want := map[string]string{}
			for key := range map[string]bool{"x": true, "y": true, "z": true} {
				a, hasA := tables["a"][key]
				b, hasB := tables["b"][key]
				c, hasC := tables["c"][key]
				j := joined{kind: joinKind(slices.Index(joinKinds, kind))}
				hasAB := j.has(hasA, hasB)
				if j.has(hasAB, hasC) {
					text := func(n int64, has bool) string {
						if has {
							return fmt.Sprint(n)
						}
						return "null"
					}
					ab := "null"
					if hasAB {
						ab = "[" + text(a, hasA) + "," + text(b, hasB) + "]"
					}
					want[key] = "[" + ab + "," + text(c, hasC) + "]"
				}
			}
			if !maps.Equal(r.last, want) {
				t.Fatalf("%s join, after %v in %s: got %v, want %v", kind, e, topic, r.last, want)
			}
		}
	}
}

// TestBadRecordsInJoins processes records of which some fail when they are joined, with and without them.
func TestBadRecordsInJoins(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	src := `
tables:
  - {name: t, from: {topic: t, value: int, on_error: skip}}
streams:
  - {name: b, from: {topic: b, value: int, on_error: skip}, steps: [map: value]}
  - name: a
    from: {topic: a, value: int, on_error: skip}
    steps:
      - join: {stream: b, within: 5ms, grace: 3ms, type: outer, value: 'value == nil or other == nil or (value + other) % 4 > 0 ? (value ?? 0) + (other ?? 0) : int("none")'}
      - join: {table: t, type: left, value: 'value + (other ?? 0)'}
      - to: {topic: out, value: json}
`
	all, good := newJoinRun(t, src), newJoinRun(t, src)
	for i := range 1500 {
		e := event{key: string(rune('a' + rng.IntN(3))), ts: max(0, int64(i)-rng.Int64N(8)), weight: 1 + rng.Int64N(9)}
		topic := string("abt"[rng.IntN(3)])
		before := all.p.Skipped
		all.process(topic, e)
		if all.p.Skipped > before {
			continue
		}
		good.process(topic, e)
	}
	if all.p.Skipped < 100 || len(good.out) < 200 {
		t.Fatalf("%d bad records, %d results", all.p.Skipped, len(good.out))
	}
	if !slices.Equal(all.out, good.out) {
		t.Errorf("results differ:\n%s\n%s", strings.Join(all.out, " "), strings.Join(good.out, " "))
	}
	if got, want := printStores(all.stores), printStores(good.stores); got != want {
		t.Errorf("stores differ\n%s\n%s", got, want)
	}
}
