package streams_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// rowStore is a store whose calls cost next to nothing, so that a benchmark shows the processor. Its rows have 16 bytes.
type rowStore struct{ rows map[string]*[16]byte }

func (s rowStore) Get(key []byte) ([]byte, bool, error) {
	if r := s.rows[string(key)]; r != nil {
		return r[:], true, nil
	}
	return nil, false, nil
}

func (s rowStore) Put(key, value []byte) {
	if s.rows[string(key)] == nil {
		s.rows[string(key)] = new([16]byte)
	}
	copy(s.rows[string(key)][:], value)
}

func (s rowStore) Delete(key []byte) { delete(s.rows, string(key)) }

func (s rowStore) Scan(_, _ []byte, _ func(key, value []byte) bool) error { return nil }

type discard struct{ n int }

func (d *discard) Emit(*kgo.Record) { d.n++ }

// counters count the records of each key: in YAML, in Go, and by a processor written by hand.
var counters = map[string]func(testing.TB) *topology.Topology{
	"yaml": func(t testing.TB) *topology.Topology {
		f := yamlnode.Parse("test.yaml", []byte(`streams: [{name: events, from: {topic: events, value: bytes}, steps: [count: {store: counts}, to: {topic: out, value: int}]}]`), nil)
		top := topology.Parse("app", f.Root().Map().Get("streams"))
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		return top
	},
	"go": inGo(func(b *streams.Builder) {
		streams.From(b, "events", streams.String, streams.Bytes).GroupByKey().Count("counts").To("out")
	}),
	"go, filtered": inGo(func(b *streams.Builder) {
		streams.From(b, "events", streams.String, streams.Bytes).Filter(func(r record[string, []byte]) bool { return len(r.Value) > 3 }).
			GroupByKey().Count("counts").To("out")
	}),
	"by hand": inGo(func(b *streams.Builder) {
		in := streams.From(b, "events", streams.String, streams.Bytes)
		streams.Process(in, "count", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(record[string, []byte]) error {
			counts := streams.NewStore(c, "counts", streams.String, streams.Int)
			return func(r record[string, []byte]) error {
				n, _ := counts.Get(r.Key)
				counts.Put(r.Key, n+1)
				c.Forward(r.Key, n+1)
				return nil
			}
		}).To("out")
	}),
}

func inGo(build func(*streams.Builder)) func(testing.TB) *topology.Topology {
	return func(t testing.TB) *topology.Topology {
		b := streams.New()
		build(b)
		top, err := b.Topology("app")
		if err != nil {
			t.Fatal(err)
		}
		return top
	}
}

func counter(t testing.TB, of func(testing.TB) *topology.Topology) (p *topology.Processor, recs []*kgo.Record, out *discard) {
	out = new(discard)
	p, err := of(t).Subtopologies[0].NewProcessor([]topology.Store{rowStore{make(map[string]*[16]byte)}}, out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		recs = append(recs, &kgo.Record{Topic: "events", Key: fmt.Appendf(nil, "key-%06d", i%500), Value: make([]byte, 100), Timestamp: time.UnixMilli(int64(i))})
	}
	return p, recs, out
}

// Counting allocates nothing for each record, but now and then memory for many outputs.
func TestAllocations(t *testing.T) {
	for name, top := range counters {
		p, recs, _ := counter(t, top)
		per := testing.AllocsPerRun(10, func() {
			if err := p.Process(0, recs); err != nil {
				t.Fatal(err)
			}
		}) / float64(len(recs))
		if per > 0.05 {
			t.Errorf("%s: %.3f allocations per record", name, per)
		}
	}
}

// BenchmarkCount is for a record; its Go topologies are the same steps as in YAML.
func BenchmarkCount(b *testing.B) {
	for _, name := range []string{"yaml", "go", "go, filtered", "by hand"} {
		b.Run(name, func(b *testing.B) {
			p, recs, out := counter(b, counters[name])
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += len(recs) {
				if err := p.Process(0, recs[:min(len(recs), b.N-n)]); err != nil {
					b.Fatal(err)
				}
			}
			if out.n != b.N {
				b.Fatalf("%d results of %d records", out.n, b.N)
			}
		})
	}
}
