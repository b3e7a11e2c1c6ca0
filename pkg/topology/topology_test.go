package topology

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// parse builds the topology of the streams in src.
func parse(t testing.TB, src string) *Topology {
	t.Helper()
	f := yamlnode.Parse("test.yaml", []byte(src), nil)
	top := Parse("app", f.Root().Map().Get("streams"))
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	return top
}

// mapStore is a store in memory that counts its calls.
type mapStore map[string][]byte

func (s mapStore) Get(key []byte) ([]byte, bool, error) { v, ok := s[string(key)]; return v, ok, nil }
func (s mapStore) Delete(key []byte)                    { delete(s, string(key)) }

// Put writes over the old value where it can, as a real store may.
func (s mapStore) Put(key, value []byte) {
	if old, ok := s[string(key)]; ok && len(old) == len(value) {
		copy(old, value)
		return
	}
	s[string(key)] = append([]byte(nil), value...)
}

// app runs all subtopologies of a topology in memory, repartition topics included.
type app struct {
	t       testing.TB
	top     *Topology
	procs   []*Processor
	stores  map[string]mapStore
	pending []*kgo.Record
	out     []*kgo.Record
}

func (a *app) Emit(r *kgo.Record) { a.pending = append(a.pending, r) }

func newApp(t testing.TB, src string) *app {
	t.Helper()
	a := &app{t: t, top: parse(t, src), stores: make(map[string]mapStore)}
	for _, s := range a.top.Subtopologies {
		var stores []Store
		for _, spec := range s.Stores {
			a.stores[spec.Name] = make(mapStore)
			stores = append(stores, a.stores[spec.Name])
		}
		p, err := s.NewProcessor(stores, a)
		if err != nil {
			t.Fatal(err)
		}
		a.procs = append(a.procs, p)
	}
	return a
}

// feed processes a record and what follows from it in other subtopologies.
func (a *app) feed(rec *kgo.Record) error {
	a.pending = append(a.pending, rec)
	for len(a.pending) > 0 {
		r := a.pending[0]
		a.pending = a.pending[1:]
		consumed := false
		for i, s := range a.top.Subtopologies {
			for j, source := range s.Sources {
				if source.Topic == r.Topic {
					consumed = true
					if err := a.procs[i].Process(j, []*kgo.Record{r}); err != nil {
						return err
					}
				}
			}
		}
		if !consumed || r != rec && !isInternal(a.top, r.Topic) {
			a.out = append(a.out, r)
		}
	}
	return nil
}

func isInternal(t *Topology, topic string) bool { return internalName(t.App, topic) }

func rec(topic, key, value string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(1)}
	if key != "null" {
		r.Key = []byte(key)
	}
	if value != "null" {
		r.Value = []byte(value)
	}
	return r
}

const wordCount = `
streams:
  - name: lines
    from: {topic: lines, value: string}
    steps:
      - flat_map: split(lower(value), " ")
      - filter: value != ""
      - rekey: value
      - count: {store: counts}
      - to: {topic: counts, value: int}
`

func TestWordCount(t *testing.T) {
	a := newApp(t, wordCount)
	for _, line := range []string{"The quick  fox", "the dog"} {
		if err := a.feed(rec("lines", "null", line)); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string]uint64)
	for _, r := range a.out {
		if r.Topic != "counts" || r.Partition != -1 {
			t.Fatalf("unexpected record to %s[%d]", r.Topic, r.Partition)
		}
		got[string(r.Key)] = binary.BigEndian.Uint64(r.Value)
	}
	want := map[string]uint64{"the": 2, "quick": 1, "fox": 1, "dog": 1}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: got %d, want %d", k, got[k], n)
		}
	}
	if len(a.out) != 5 {
		t.Errorf("got %d updates, want one per word: 5", len(a.out))
	}
}
