package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestRegroupedTables changes a table at random: the aggregates of its groups are those of its last rows.
func TestRegroupedTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	a := newApp(t, `
tables:
  - {name: rows, from: {topic: rows, value: json}}
  - {name: sums, from: {table: rows}, steps: [rekey: value.g, sum: {value: int(value.n)}, to: {topic: sums, key: json, value: int}]}
  - {name: counts, from: {table: rows}, steps: [rekey: value.g, count, to: {topic: counts, key: json, value: int}]}
  - name: products
    from: {table: rows}
    steps: [rekey: value.g, aggregate: {initial: '1.0', add: acc * value.n, subtract: acc / value.n}, to: {topic: products, key: json, value: float}]
`)
	type row struct{ g, n int64 }
	rows, seen, got := map[string]row{}, map[int64]bool{}, map[string]map[string]string{"sums": {}, "counts": {}, "products": {}}
	for i := range 500 {
		key := fmt.Sprint("k", rng.IntN(8))
		r := row{rng.Int64N(3), 1 << rng.IntN(4)}
		rec := &kgo.Record{Topic: "rows", Key: []byte(key), Value: fmt.Appendf(nil, `{"g": %d, "n": %d}`, r.g, r.n), Timestamp: time.UnixMilli(int64(i))}
		if rows[key] = r; rng.IntN(4) == 0 {
			rec.Value = nil
			delete(rows, key)
		} else {
			seen[r.g] = true
		}
		out, err := a.feed(rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if results := got[o.Topic]; results != nil {
				results[string(o.Key)] = printData(o.Value, map[string]Format{"sums": Int, "counts": Int, "products": Float}[o.Topic])
			}
		}
		want := map[string]map[string]string{"sums": {}, "counts": {}, "products": {}}
		for g := range seen {
			sum, count, product := int64(0), 0, 1.0
			for _, one := range rows {
				if one.g == g {
					sum, count, product = sum+one.n, count+1, product*float64(one.n)
				}
			}
			group := fmt.Sprint(g)
			want["sums"][group], want["counts"][group], want["products"][group] = fmt.Sprint("i:", sum), fmt.Sprint("i:", count), fmt.Sprint("f:", product)
		}
		for topic := range want {
			if !maps.Equal(got[topic], want[topic]) {
				t.Fatalf("%s of %v: got %v, want %v", topic, rows, got[topic], want[topic])
			}
		}
	}
}

// FuzzChange reads any bytes as a change of a row.
func FuzzChange(f *testing.F) {
	f.Add(appendChange(nil, []byte("new"), []byte("old")))
	f.Add(appendChange(nil, nil, []byte{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		value, old, ok := parseChange(b)
		if !ok {
			return
		}
		again := appendChange(nil, value, old)
		if v, o, ok := parseChange(again); !ok || string(v) != string(value) || string(o) != string(old) || (v == nil) != (value == nil) {
			t.Errorf("%x is %x and %x, which is %x", b, value, old, again)
		}
	})
}
