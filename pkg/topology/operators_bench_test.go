package topology

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/RaduBerinde/btreemap"
	"github.com/twmb/franz-go/pkg/kgo"
)

// treeStore is an ordered store in memory.
type treeStore struct {
	rows *btreemap.BTreeMap[[]byte, []byte]
}

func newTreeStore() treeStore {
	return treeStore{btreemap.New[[]byte, []byte](32, bytes.Compare)}
}

func (s treeStore) Get(key []byte) ([]byte, bool, error) {
	_, v, ok := s.rows.Get(key)
	return v, ok, nil
}

func (s treeStore) Put(key, value []byte) {
	s.rows.ReplaceOrInsert(bytes.Clone(key), bytes.Clone(value))
}

func (s treeStore) Delete(key []byte) { s.rows.Delete(key) }

func (s treeStore) Scan(from, to []byte, f func(key, value []byte) bool) error {
	for key, value := range s.rows.Ascend(btreemap.GE(from), btreemap.Max[[]byte]()) {
		if to != nil && bytes.Compare(key, to) >= 0 || !f(key, value) {
			break
		}
	}
	return nil
}

// table begins what is the source and the steps of a table.
const table = "table "

// BenchmarkOperators is the cost of steps, with stores in memory; one operation is one record, of two topics in turn. Time goes
// on by 1 ms a record, over 500 keys.
func BenchmarkOperators(b *testing.B) {
	for _, c := range []struct{ name, steps string }{
		{"filter", "filter: value >= 0"},
		{"map", "map: value + 1"},
		{"flat-map", "flat_map: '[value, value + 1]'"},
		{"rekey", "rekey: string(value)"},
		{"count", "count"},
		{"sum", "sum"},
		{"max", "max"},
		{"reduce", "reduce: acc + value"},
		{"aggregate", "aggregate: {initial: '0', add: acc + value}"},
		{"collect", "collect: {limit: 10}"},
		{"first", "first"},
		{"last", "last"},
		{"tumbling", "count: {window: {tumbling: 10s}}"},
		{"hopping", "count: {window: {hopping: 10s, every: 2s}}"},
		{"sliding", "count: {window: {sliding: 5s}}"},
		{"session", "count: {window: {session: 1s}}"},
		{"tumbling-close", "count: {window: {tumbling: 10s}, emit: close}"},
		{"top-n", "top_n: {n: 10, by: value}"},
		{"distinct", "count_distinct: value % 10"},
		{"dedupe", "dedupe: {within: 10s, by: value}"},
		{"ttl", "count: {ttl: 10s}"},
		{"table-join", "join: {table: t, type: left, value: value}"},
		{"stream-join", "join: {stream: o, within: 2s, value: value + other}"},
		{"stream-join-left", "join: {stream: o, within: 2s, type: left, value: value}"},
		{"tables-join", table + "{table: t}, steps: [join: {table: u, value: value + other}, to: {topic: joined, value: int}]"},
		{"tables-join-by-key", table + "{table: t}, steps: [join: {table: u, on: '\"key-\" + string(value)', type: left, value: value}, to: {topic: joined, value: int}]"},
		{"table-groups", table + "{table: u}, steps: [rekey: string(value), sum, to: {topic: joined, value: int}]"},
		{"global-join", "join: {table: g, key: key, type: left, value: value}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			steps, more, _ := strings.Cut(c.steps, table)
			if more != "" {
				steps, more = "filter: value >= 0", "  - {name: u, from: {topic: a, value: int}}\n  - {name: j, from: "+more+"}"
			}
			top := parse(b, fmt.Sprintf(`
tables:
  - {name: t, from: {topic: b, value: int}}
  - {name: g, from: {topic: g, value: int}, global: true}
%s
streams:
  - {name: o, from: {topic: b, value: int}, steps: [filter: value >= 0]}
  - {name: s, from: {topic: a, value: int}, steps: [%s, to: {topic: out, value: json}]}
  - {name: all, from: {streams: [o]}, steps: [to: {topic: other, value: int}]}
`, more, "{"+steps+"}"))
			var procs []*Processor
			sources := make(map[string][]func(*kgo.Record) error)
			for _, s := range top.Subtopologies {
				var stores []Store
				for range s.Stores {
					stores = append(stores, newTreeStore())
				}
				var globals []*GlobalTable
				for _, g := range s.Globals {
					globals = append(globals, NewGlobalTable(g))
				}
				p, err := s.NewProcessor(stores, new(discard), globals...)
				if err != nil {
					b.Fatal(err)
				}
				procs = append(procs, p)
				for i, topic := range s.Topics() {
					sources[topic] = append(sources[topic], func(r *kgo.Record) error { return p.Process(i, []*kgo.Record{r}) })
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := &kgo.Record{Topic: "ab"[i%2 : i%2+1], Key: fmt.Appendf(nil, "key-%03d", i/2%500), Value: intBytes(int64(i % 97)), Timestamp: time.UnixMilli(int64(i))}
				for _, process := range sources[r.Topic] {
					if err := process(r); err != nil {
						b.Fatal(err)
					}
				}
			}
			if procs[0].In == 0 {
				b.Error("nothing was processed")
			}
		})
	}
}
