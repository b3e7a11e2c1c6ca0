package topology

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rowStore is a store whose calls cost next to nothing, so that a benchmark shows the processor.
type rowStore struct{ rows map[string]*[16]byte }

func (s rowStore) Get(key []byte) ([]byte, bool, error) {
	if r := s.rows[string(key)]; r != nil {
		return r[:], true, nil
	}
	return nil, false, nil
}

func (s rowStore) Put(key, value []byte) {
	if r := s.rows[string(key)]; r != nil {
		copy(r[:], value)
		return
	}
	r := new([16]byte)
	copy(r[:], value)
	s.rows[string(key)] = r
}

func (s rowStore) Delete(key []byte) { delete(s.rows, string(key)) }

type discard struct{ n int }

func (d *discard) Emit(*kgo.Record) { d.n++ }

// benchProcess feeds batches of records to one subtopology; one operation is one input record.
func benchProcess(b *testing.B, src string, sub int, record func(i int) *kgo.Record) {
	benchTopology(b, parse(b, src), sub, record)
}

func benchTopology(b *testing.B, top *Topology, sub int, record func(i int) *kgo.Record) {
	s := top.Subtopologies[sub]
	stores := make([]Store, len(s.Stores))
	for i := range stores {
		stores[i] = rowStore{rows: make(map[string]*[16]byte)}
	}
	out := new(discard)
	p, err := s.NewProcessor(stores, out)
	if err != nil {
		b.Fatal(err)
	}
	recs := make([]*kgo.Record, 1000)
	for i := range recs {
		recs[i] = record(i)
		recs[i].Topic, recs[i].Timestamp = s.Sources[0].Topic, time.UnixMilli(int64(i))
	}
	// The heap is of a few MB. Collections would cost what a process has besides, as the types of libraries: instances have so much more
	// that this does not show.
	defer debug.SetGCPercent(debug.SetGCPercent(1600))
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(recs) {
		if err := p.Process(0, recs[:min(len(recs), b.N-n)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(out.n)/float64(b.N), "out/op")
}

func BenchmarkCount(b *testing.B) {
	const src = `
streams:
  - {name: events, from: {topic: events, value: bytes}, steps: [count: {store: counts}, to: {topic: counts, value: int}]}
`
	benchProcess(b, src, 0, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "key-%06d", i%500), Value: make([]byte, 100)}
	})
}

func BenchmarkWordCountSplit(b *testing.B) {
	benchProcess(b, wordCount, 0, func(i int) *kgo.Record {
		return &kgo.Record{Value: []byte("The quick brown fox jumps over the lazy dog again")}
	})
}

func BenchmarkWordCountCount(b *testing.B) {
	benchProcess(b, wordCount, 1, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "word%d", i%500), Value: []byte{}}
	})
}

func BenchmarkFilterMapJSON(b *testing.B) {
	const src = `
streams:
  - name: orders
    from: {topic: orders, value: json}
    steps:
      - filter: value.amount > 10
      - map: '{"user": value.user, "cents": int(value.amount * 100)}'
      - to: {topic: big, value: json}
`
	benchProcess(b, src, 0, func(i int) *kgo.Record {
		return &kgo.Record{Key: []byte("k"), Value: fmt.Appendf(nil,
			`{"id": %d, "user": "user-%d", "amount": %d.5, "items": [{"sku": "a-1", "qty": 2}, {"sku": "b-2", "qty": 1}], "note": null}`, i, i%50, i%20)}
	})
}

// BenchmarkFilterMapOrders is the job of the workload filter of integration/bench.
func BenchmarkFilterMapOrders(b *testing.B) {
	const src = `
streams:
  - name: orders
    from: {topic: orders, value: json}
    steps:
      - filter: value.amount > 50
      - map: '{"user": value.user, "cents": int(value.amount * 100)}'
      - to: {topic: big, value: json}
`
	benchProcess(b, src, 0, func(i int) *kgo.Record {
		return &kgo.Record{Key: []byte("k"), Value: fmt.Appendf(nil,
			`{"id":%d,"user":"user-%05d","amount":%.2f,"country":"NL","note":"%016x%08x"}`, i, i%50, float64(i%400)/4, i, i)}
	})
}

// BenchmarkPassJSON checks values and passes them on.
func BenchmarkPassJSON(b *testing.B) {
	const src = `
streams:
  - {name: o, from: {topic: o, value: json}, steps: [to: {topic: t, value: json}]}
`
	benchProcess(b, src, 0, func(i int) *kgo.Record {
		return &kgo.Record{Value: fmt.Appendf(nil, `{"id": %d, "user": "user-%05d", "amount": %d.5, "items": [{"sku": "a-1", "qty": 2}], "note": null}`, i, i, i%20)}
	})
}

func BenchmarkSumJSON(b *testing.B) {
	const src = `
streams:
  - {name: o, from: {topic: o, value: json}, steps: [sum: {value: value.amount}, to: {topic: t, value: float}]}
`
	benchProcess(b, src, 0, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "u%d", i%500), Value: fmt.Appendf(nil, `{"id": %d, "amount": %d.5}`, i, i%20)}
	})
}

const countAtCommit = `
streams:
  - {name: events, from: {topic: events, value: bytes}, steps: [count: {store: counts, emit: commit}, to: {topic: counts, value: int}]}
`

func BenchmarkCountAtCommit(b *testing.B) {
	benchProcess(b, countAtCommit, 0, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "key-%06d", i%500), Value: make([]byte, 100)}
	})
}

// BenchmarkEmitChanges sends results on; one operation is one key.
func BenchmarkEmitChanges(b *testing.B) {
	out := new(discard)
	p, err := parse(b, countAtCommit).Subtopologies[0].NewProcessor([]Store{make(mapStore)}, out)
	if err != nil {
		b.Fatal(err)
	}
	key, value := []byte("key-000001"), make([]byte, 16)
	b.ReportAllocs()
	err = p.EmitChanges("counts", func(yield func(key, value []byte) bool) {
		for b.Loop() && yield(key, value) {
		}
	})
	if err != nil || out.n == 0 {
		b.Fatal(err, out.n)
	}
}
