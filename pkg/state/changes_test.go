package state

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
)

// What is done with the changes of one store may change those that come later, as part of the same freeze.
func TestFreezeEach(t *testing.T) {
	e := testEngine(t, Config{})
	db, err := e.Open("0_0", []StoreSpec{{Name: "a", TopicID: [16]byte{1}}, {Name: "b", TopicID: [16]byte{2}}, {Name: "c", TopicID: [16]byte{3}}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := db.Store("a"), db.Store("b")
	a.Put([]byte("gone"), []byte("x"))
	if err := db.Apply(db.Freeze(), []int64{1, 1, 1}); err != nil {
		t.Fatal(err)
	}
	write := func() {
		for i := range 100 {
			a.Put(fmt.Appendf(nil, "key-%02d", 99-i), fmt.Appendf(nil, "v%d", i))
		}
		a.Delete([]byte("gone"))
	}
	var calls []int
	copyOn := func(store int, changes iter.Seq2[[]byte, []byte]) error {
		calls = append(calls, store)
		if store != 0 {
			return nil
		}
		var keys []string
		for key, value := range changes {
			keys = append(keys, string(key))
			if (string(key) == "gone") != (value == nil) {
				t.Errorf("%s has the value %q", key, value)
			}
			if value != nil {
				b.Put(key, value)
			}
		}
		if len(keys) != 101 || !slices.IsSorted(keys) {
			t.Errorf("changes %v", keys)
		}
		return nil
	}
	write()
	c, err := db.FreezeEach(copyOn)
	if err != nil || !slices.Equal(calls, []int{0, 1}) {
		t.Fatalf("%v, called for stores %v", err, calls)
	}
	if c.Len() != 201 {
		t.Errorf("%d changes, want 101 of a and 100 of b", c.Len())
	}
	if err := db.Apply(c, []int64{2, 2, 2}); err != nil {
		t.Fatal(err)
	}
	if again, err := db.FreezeEach(copyOn); again != nil || err != nil || len(calls) != 2 {
		t.Errorf("%v, %v: want nothing the second time", again, err)
	}

	// After an error the writes can be discarded.
	write()
	a.Put([]byte("key-00"), []byte("never"))
	broken := errors.New("broken")
	if _, err := db.FreezeEach(func(int, iter.Seq2[[]byte, []byte]) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	db.Discard()
	if v, ok, err := a.Get([]byte("key-00")); err != nil || !ok || string(v) != "v99" {
		t.Errorf("after the discard: %q, %v, %v", v, ok, err)
	}
	mustClose(t, db)
}
