package topology

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// TestEmitAtCommit processes the same random records with emit: update and with emit: commit, which commits now and then. The
// results of commits have to be some of those of updates, in the same order for each key, with the last one of each key.
func TestEmitAtCommit(t *testing.T) {
	const src = `
streams:
  - name: s
    from: {topic: in, value: int, on_error: skip}
    steps:
      - filter: value % 5 != 0
      - sum: {store: sums, emit: EMIT}
      - map: value * 10
      - to: {topic: sums, value: int}
      - max: {store: most, emit: EMIT}
      - to: {topic: most, value: int}
  - name: t
    from: {topic: in, value: int, on_error: skip}
    steps:
      - reduce: {store: left, expr: 'value % 3 == 0 ? nil : acc + value', emit: EMIT}
      - to: {topic: left, value: int}
`
	r := rand.New(rand.NewPCG(5, 6))
	var recs []*kgo.Record
	for i := range 2000 {
		value := parseData(fmt.Sprintf("i:%d", r.IntN(50)))
		recs = append(recs, &kgo.Record{
			Topic: "in", Key: []byte{byte('a' + r.IntN(9))}, Value: value, Timestamp: time.UnixMilli(int64(i)),
			Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("1")}},
		})
	}
	run := func(emit string) (stores []Store, out map[string][]string) {
		s := parse(t, strings.ReplaceAll(src, "EMIT", emit)).Subtopologies[0]
		for range s.Stores {
			stores = append(stores, newChangedStore())
		}
		c := new(byKey)
		p, err := s.NewProcessor(stores, c)
		if err != nil {
			t.Fatal(err)
		}
		if p.EmitsAtCommit() != (emit == "commit") {
			t.Errorf("emit: %s: it says that it emits at commits: %v", emit, p.EmitsAtCommit())
		}
		for i := 0; i < len(recs); {
			n := min(len(recs)-i, 1+r.IntN(60))
			if err := p.Process(0, recs[i:i+n]); err != nil {
				t.Fatal(err)
			}
			i += n
			if err := commit(p, s, func(i int) changedStore { return stores[i].(changedStore) }); err != nil {
				t.Fatal(err)
			}
		}
		return stores, c.out
	}
	stores, all := run("update")
	storesLate, late := run("commit")
	for i := range stores {
		if got, want := printStores([]Store{storesLate[i].(changedStore).mapStore}), printStores([]Store{stores[i].(changedStore).mapStore}); got != want {
			t.Errorf("store %d has\n%s\nwant\n%s", i, got, want)
		}
	}
	if len(late) != len(all) {
		t.Errorf("results of %d topics and keys, want %d", len(late), len(all))
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		want, got := all[key], late[key]
		if len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: the last of %q is not that of %q", key, got, want)
		}
		if len(got) > len(want)*2/3 {
			t.Errorf("%s: %d results of %d updates", key, len(got), len(want))
		}
	}
}

// byKey keeps what is emitted by topic and key: the values, and the timestamps of those that are no nulls.
type byKey struct{ out map[string][]string }

func (b *byKey) Emit(r *kgo.Record) {
	if b.out == nil {
		b.out = make(map[string][]string)
	}
	text := printData(r.Value, Int)
	if r.Value != nil {
		text += fmt.Sprintf(" at %d", r.Timestamp.UnixMilli())
	}
	key := r.Topic + " " + string(r.Key)
	b.out[key] = append(b.out[key], text)
}

// What comes at a commit has no headers: it is of no single record.
func TestResultsAtCommitHaveNoHeaders(t *testing.T) {
	s := parse(t, "streams:\n  - {name: s, from: in, steps: [count: {emit: commit}, to: {topic: out, value: int}]}").Subtopologies[0]
	store := newChangedStore()
	var out []*kgo.Record
	p, err := s.NewProcessor([]Store{store}, emitFunc(func(r *kgo.Record) { out = append(out, r) }))
	if err != nil {
		t.Fatal(err)
	}
	rec := &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h"}}}
	if err := p.Process(0, []*kgo.Record{rec}); err != nil || len(out) > 0 {
		t.Fatalf("%v, %d results before the commit", err, len(out))
	}
	if err := commit(p, s, func(int) changedStore { return store }); err != nil || len(out) != 1 || len(out[0].Headers) > 0 {
		t.Errorf("%v, results %v: want one without headers", err, out)
	}
}

// TestTotal wants expressions to be told apart by whether they may fail, and those that may not to give something that can be
// written for all kinds of values.
func TestTotal(t *testing.T) {
	for _, c := range []struct {
		value Format
		total bool
		exprs []string
	}{
		{Int, true, []string{
			"value + 1", "value * value - timestamp", "-value", "value / 0", "value > 3 or not (key == \"a\")", "string(value)", "int(value)", "float(value)",
			"lower(key) + upper(trim(key))", "len(key)", "value > 3 ? key : topic", `{"a": value, "b": [key, {"c": value > 2}], (key): 1, 3: 4}`, `split(key, "b")`, `split(key, "")`,
			`key contains "x" && key startsWith "a" || key endsWith "b"`, "value != 1 ? 2 : 3", "partition + offset", "[value, value]",
		}},
		{Int, false, []string{
			"value % 2", "key[0:3]", "int(key)", "float(key)", "headers[\"a\"]", "value > 3 ? value : nil", "nil", "fromJSON(key)", "1 in [1]", "key matches key",
			"value > 3 ? value : key", "1..value", `{"a": value / 2}`, `{(value): 1}`, "$env", "max(value, 2)", "filter(split(key, \"\"), # == \"a\")", "let x = value; x",
		}},
		{Float, true, []string{"value * 2 - 1.5", "int(value)", "string(value)", "value < 3", "value == value", `{"a": string(value)}`, "-value / value"}},
		{Float, false, []string{`{"a": value}`, "[value]", "value ** 2"}},
		{String, true, []string{"value", "value + key", "value < key", "len(value) + 1", "split(value, key)", "[value]"}},
		{Bytes, true, []string{"value == value", "string(value)", "len(value)"}},
		{Bytes, false, []string{"[value]", "value[0]"}},
		{JSON, false, []string{"value", "value.a", "string(value)", "len(value)", "value == 1", "{\"a\": value}", "value ?? 1"}},
	} {
		values := map[Format][]datum{
			Int:    {intDatum(0), intDatum(1), intDatum(-1), intDatum(math.MaxInt64), intDatum(math.MinInt64)},
			Float:  {floatDatum(0), floatDatum(-1.5), floatDatum(math.NaN()), floatDatum(math.Inf(1)), floatDatum(math.Inf(-1)), floatDatum(math.MaxFloat64)},
			String: {textDatum(""), textDatum("abab"), textDatum("\xff\x00")},
			Bytes:  {rawDatum([]byte{}), rawDatum([]byte{0xff, 1})},
		}[c.value]
		for _, text := range c.exprs {
			e := compiled(t, text, scope{key: String, value: c.value})
			if e.total != c.total {
				t.Errorf("%s of a %s cannot fail: %v, want %v", text, c.value, e.total, c.total)
			}
			if !c.total {
				continue
			}
			for _, key := range []string{"", "a", "\xff"} {
				for _, v := range values {
					x := evaluator{env: make(map[string]any)}
					m := &message{key: textDatum(key), value: v, ts: math.MaxInt64, source: &kgo.Record{}}
					result, err := x.run(e, m, nil)
					if err == nil && e.typ.shape == list {
						_, err = new(slabs).encodeJSON(result)
					} else if err == nil {
						f, _ := e.format(c.value)
						var d datum
						if d, err = unbox(result, f); err == nil {
							err = d.encode(f, new(slabs))
						}
					}
					if err != nil {
						t.Errorf("%s of %+v: %v", text, v, err)
					}
				}
			}
		}
	}
}

// compiled compiles an expression that must be right.
func compiled(t *testing.T, text string, s scope) *expression {
	t.Helper()
	f := yamlnode.Parse("e.yaml", fmt.Appendf(nil, "e: %q", text), nil)
	e := compile(f.Root().Map().Get("e"), s)
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

type emitFunc func(*kgo.Record)

func (f emitFunc) Emit(r *kgo.Record) { f(r) }
