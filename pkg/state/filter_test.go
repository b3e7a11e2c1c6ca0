package state

import (
	"fmt"
	"hash/maphash"
	"testing"
)

func TestFilter(t *testing.T) {
	const keys = 200_000
	b := &budget{limit: 64 << 20}
	f := newFilter(b)
	seed := maphash.MakeSeed()
	hash := func(kind string, i int) uint64 { return maphash.String(seed, fmt.Sprint(kind, i)) }
	for range 2 { // known keys take no room
		for i := range keys {
			if !f.add(hash("in", i)) {
				t.Fatal("no room")
			}
		}
	}
	wrong := 0
	for i := range keys {
		if !f.has(hash("in", i)) {
			t.Fatalf("key %d is lost", i)
		}
		if f.has(hash("out", i)) {
			wrong++
		}
	}
	if share := float64(wrong) / keys; share > 0.03 {
		t.Errorf("%.1f %% of absent keys are not known as such", 100*share)
	}
	if perKey := 8 * float64(f.size.Load()) / keys; b.used.Load() != f.size.Load() || perKey > 4*bitsPerKey {
		t.Errorf("%d bytes, %.0f bits a key, %d counted", f.size.Load(), perKey, b.used.Load())
	}
	f.release()
	if b.used.Load() != 0 {
		t.Error("something of the budget is left with a filter that was released")
	}

	small := newFilter(&budget{limit: 1 << 20})
	n := 0
	for small.add(hash("in", n)) {
		n++
	}
	if small.size.Load() > small.budget.limit/filterShare || n < firstLayer {
		t.Errorf("%d keys and %d bytes in a budget of %d", n, small.size.Load(), small.budget.limit)
	}
}
