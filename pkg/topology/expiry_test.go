package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestExpiryAcrossRestarts counts rows with a ttl and drops repeated records, with processors that end in between and bad records
// that are taken back; a naive model has to agree.
func TestExpiryAcrossRestarts(t *testing.T) {
	const after = 20
	rng := rand.New(rand.NewPCG(1, 2))
	r := newJoinRun(t, fmt.Sprintf(`
streams:
  - name: s
    from: {topic: in, value: int, on_error: skip}
    steps:
      - dedupe: {within: %dms, by: value}
      - sum: {store: sums, ttl: %dms}
      - map: 'value == nil or value %% 9 != 0 ? value : int("none")'
      - to: {topic: out, value: json}
`, after, after))
	type seen struct {
		key    string
		weight int64
	}
	type row struct{ sum, ts int64 }
	firsts, rows := map[seen]int64{}, map[string]row{}
	now, nowPassed := int64(-1), int64(-1)
	bad := 0
	for i := range 3000 {
		e := event{key: string(rune('a' + rng.IntN(4))), ts: max(0, int64(i)*2-rng.Int64N(30)), weight: 1 + rng.Int64N(8)}
		if rng.IntN(50) == 0 {
			r.restart()
		}
		before := r.p.Skipped
		r.process("in", e)
		id := seen{e.key, e.weight}
		if r.p.Skipped > before { // as if it had never been
			bad++
			continue
		}
		now = max(now, e.ts)
		first, ok := firsts[id]
		if ok && first > now-after && e.ts < first+after && e.ts > first-after {
			continue
		}
		if !ok || e.ts > first {
			firsts[id] = e.ts
		}
		nowPassed = max(nowPassed, e.ts)
		maps.DeleteFunc(rows, func(_ string, one row) bool { return one.ts <= nowPassed-after })
		one := rows[e.key]
		rows[e.key] = row{one.sum + e.weight, max(one.ts, e.ts)}
		maps.DeleteFunc(rows, func(_ string, one row) bool { return one.ts <= nowPassed-after && one.ts != e.ts })
		want := map[string]string{}
		for key, one := range rows {
			want[key] = fmt.Sprint(one.sum)
		}
		if !maps.Equal(r.last, want) {
			t.Fatalf("after %v: got %v, want %v", e, r.last, want)
		}
	}
	if bad < 50 {
		t.Errorf("%d bad records", bad)
	}
	for i, s := range r.stores {
		if n := len(s.(mapStore)); n > 200 {
			t.Errorf("store %d has %d rows: %v", i, n, slices.Sorted(maps.Keys(s.(mapStore)))[:5])
		}
	}
}
