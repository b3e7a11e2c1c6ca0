package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestForeignKeyJoins changes both tables at random, and lets answers arrive late and in any order among different rows: once all have
// arrived, the result is the join of the last rows.
func TestForeignKeyJoins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, kind := range joinKinds[:2] {
		a := newApp(t, fmt.Sprintf(`
tables:
  - {name: b, from: {topic: b}}
  - {name: a, from: {topic: a}}
  - name: ab
    from: {table: a}
    steps:
      - join: {table: b, on: 'value == "none" ? nil : value', type: %s, value: 'value + "|" + (other ?? "null")'}
      - to: {topic: out, value: json}
`, kind))
		left, right, result := map[string]string{}, map[string]string{}, map[string]string{}
		var waiting []*kgo.Record // on their way, by topic in order
		deliver := func(r *kgo.Record) {
			if err := a.consume(r); err != nil {
				t.Fatal(err)
			}
			for _, out := range a.pending {
				if out.Topic == "out" {
					if delete(result, string(out.Key)); out.Value != nil {
						result[string(out.Key)] = string(out.Value)
					}
					continue
				}
				waiting = append(waiting, out)
			}
			a.pending = nil
		}
		// next takes one on its way that none of its topic and key is before.
		next := func() {
			i := rng.IntN(len(waiting))
			for j, r := range waiting[:i] {
				if r.Topic == waiting[i].Topic && string(r.Key) == string(waiting[i].Key) {
					i = j
					break
				}
			}
			r := waiting[i]
			waiting = append(waiting[:i:i], waiting[i+1:]...)
			deliver(r)
		}
		for round := range 100 {
			for range rng.IntN(30) {
				if len(waiting) > 0 && rng.IntN(3) > 0 {
					next()
					continue
				}
				topic, rows, key := "a", left, fmt.Sprint("a", rng.IntN(5))
				value := []string{"b0", "b1", "b2", "none"}[rng.IntN(4)]
				if rng.IntN(2) == 0 {
					topic, rows, key, value = "b", right, fmt.Sprint("b", rng.IntN(3)), fmt.Sprint("v", rng.IntN(100))
				}
				rec := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value), Timestamp: time.UnixMilli(int64(round))}
				if rows[key] = value; rng.IntN(4) == 0 {
					rec.Value = nil
					delete(rows, key)
				}
				deliver(rec)
			}
			for len(waiting) > 0 {
				next()
			}
			want := map[string]string{}
			for key, fk := range left {
				if other, ok := right[fk]; ok {
					want[key] = fmt.Sprintf("%q", fk+"|"+other)
				} else if kind == "left" {
					want[key] = fmt.Sprintf("%q", fk+"|null")
				}
			}
			if !maps.Equal(result, want) {
				t.Fatalf("%s join of %v and %v: got %v, want %v", kind, left, right, result, want)
			}
		}
	}
}

// FuzzForeign reads any bytes as subscriptions and answers.
func FuzzForeign(f *testing.F) {
	f.Add((&subscription{what: subscribe, version: 7, partition: 3, key: []byte("k")}).append(nil))
	f.Add((&answer{version: 5, value: []byte("value")}).append(nil))
	f.Add((&answer{version: 5, quiet: true}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseSubscription(b); ok && string(s.append(nil)) != string(b) {
			t.Errorf("%x is %+v", b, s)
		}
		if a, ok := parseAnswer(b); ok && string(a.append(nil)) != string(b) {
			t.Errorf("%x is %+v", b, a)
		}
	})
}
