package topology

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// collect keeps copies of what is emitted.
type collect struct{ out []string }

func (c *collect) Emit(r *kgo.Record) {
	c.out = append(c.out, fmt.Sprintf("%s %s=%s at %d", r.Topic, r.Key, r.Value, r.Timestamp.UnixMilli()))
}

// TestBadRecordsLeaveNoTrace processes random records of which some fail somewhere in the middle, trying bad ones again
// before passing over them, and wants the same stores, output and counters as with the good ones alone.
func TestBadRecordsLeaveNoTrace(t *testing.T) {
	const src = `
streams:
  - name: a
    from: {topic: in, value: json}
    steps:
      - flat_map: value
      - sum: {store: sums, value: int(value)}
      - to: {topic: sums, value: int}
      - filter: 10 / (value % 7) > 0 or value % 7 == 0
      - max: {store: most, value: value % 100}
      - map: 'value % 50 > 40 ? nil : string(value)'
      - to: most
      - map: lower(value)
      - reduce: {store: text, expr: 'len(acc) > 10 ? nil : acc + value'}
      - to: text
  - name: b
    from: {topic: in, value: json}
    steps:
      - reduce: {store: last, expr: 'len(value) == 3 ? nil : value'}
      - map: value[0]
      - to: {topic: firsts, value: json}
`
	top := parse(t, src)
	r := rand.New(rand.NewPCG(3, 4))
	var recs []*kgo.Record
	for i := range 400 {
		var items []string
		for range r.IntN(4) {
			items = append(items, []string{"1", "2", "5", "13", "40", `"x"`, "null", "[]"}[r.IntN(4+r.IntN(4))])
		}
		value := "[" + strings.Join(items, ",") + "]"
		if r.IntN(20) == 0 {
			value = "{"
		}
		recs = append(recs, &kgo.Record{Topic: "in", Offset: int64(i), Key: []byte{byte('a' + r.IntN(3))}, Value: []byte(value), Timestamp: time.UnixMilli(r.Int64N(1000))})
	}

	run := func(recs []*kgo.Record) (good []*kgo.Record, result string) {
		var stores []Store
		for range top.Subtopologies[0].Stores {
			stores = append(stores, make(mapStore))
		}
		out := new(collect)
		p, err := top.Subtopologies[0].NewProcessor(stores, out)
		if err != nil {
			t.Fatal(err)
		}
		for len(recs) > 0 {
			n := min(len(recs), 1+r.IntN(10))
			err := p.Process(0, recs[:n])
			good = append(good, recs[:p.Done()]...)
			recs = recs[p.Done():]
			if err == nil {
				continue
			}
			var bad *RecordError
			if !errors.As(err, &bad) || bad.Offset != recs[0].Offset {
				t.Fatalf("got %v at offset %d", err, recs[0].Offset)
			}
			if again := p.Process(0, recs[:1]); again == nil || again.Error() != err.Error() || p.Done() != 0 {
				t.Fatalf("second attempt: got %v (%d done), want %v", again, p.Done(), err)
			}
			recs = recs[1:]
		}
		return good, fmt.Sprintf("%s\n%s\n%+v", printStores(stores), strings.Join(out.out, "\n"), p.Counters)
	}
	good, got := run(recs)
	again, want := run(good)
	if len(good) < 50 || len(good) > 350 || len(again) != len(good) {
		t.Fatalf("%d of %d records are good, %d of them again", len(good), len(recs), len(again))
	}
	if got != want {
		t.Errorf("with bad records in between:\n%s\nwithout:\n%s", got, want)
	}
}

func printStores(stores []Store) string {
	var b strings.Builder
	for i, s := range stores {
		m := s.(mapStore)
		for _, key := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "%d %s: %x\n", i, key, m[key])
		}
	}
	return b.String()
}
