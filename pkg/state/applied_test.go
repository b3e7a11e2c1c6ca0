package state

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// scan reads all that AppliedRange has.
func scan(t *testing.T, s *Store, from, to []byte) map[string]string {
	t.Helper()
	it := s.AppliedRange(from, to)
	rows := map[string]string{}
	for it.Next() {
		rows[string(it.Key())] = string(it.Value())
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}

// What others see changes with Apply only, and then as a whole.
func TestApplied(t *testing.T) {
	e := testEngine(t, Config{})
	db, err := e.Open("0_0", []StoreSpec{{Name: "s", TopicID: [16]byte{1}}, {Name: "other", TopicID: [16]byte{2}}})
	if err != nil {
		t.Fatal(err)
	}
	s := db.Store("s")
	see := func(when, key, want string) {
		t.Helper()
		got, ok, err := s.Applied([]byte(key))
		if err != nil || string(got) != want || ok != (want != "") {
			t.Errorf("%s: %s is %q, %v (%v), want %q", when, key, got, ok, err, want)
		}
	}
	s.Put([]byte("a"), []byte("1"))
	s.Put([]byte("b"), []byte("1"))
	db.Store("other").Put([]byte("z"), []byte("1"))
	see("written", "a", "")
	c := db.Freeze()
	s.Put([]byte("a"), []byte("2"))
	see("frozen", "a", "")
	if err := db.Apply(c, []int64{3, 1}); err != nil {
		t.Fatal(err)
	}
	see("applied", "a", "1")
	if rows := scan(t, s, nil, nil); len(rows) != 2 || rows["a"] != "1" || rows["b"] != "1" {
		t.Errorf("rows %v", rows)
	}
	if rows := scan(t, s, []byte("b"), []byte("c")); len(rows) != 1 || rows["b"] != "1" {
		t.Errorf("rows from b to c: %v", rows)
	}
	before := s.AppliedRange(nil, nil)
	s.Delete([]byte("b"))
	if err := db.Apply(db.Freeze(), []int64{4, 1}); err != nil {
		t.Fatal(err)
	}
	see("applied again", "a", "2")
	see("deleted", "b", "")
	for n, want := range []string{"a1", "b1"} { // an iterator shows one moment
		if !before.Next() || string(before.Key())+string(before.Value()) != want {
			t.Errorf("row %d of the former state: %s %s, want %s", n, before.Key(), before.Value(), want)
		}
	}
	s.Put([]byte("a"), []byte("3"))
	db.Discard()
	see("discarded", "a", "2")

	mustClose(t, db)
	if _, _, err := s.Applied([]byte("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if before.Next() || !errors.Is(before.Err(), ErrClosed) {
		t.Errorf("an iterator of a closed task: %v", before.Err())
	}
}

// Readers and the task's goroutine do not get into each other's way, and no reader sees half of an Apply.
func TestAppliedWhileWriting(t *testing.T) {
	e := testEngine(t, Config{})
	db, err := e.Open("0_0", []StoreSpec{{Name: "s", TopicID: [16]byte{1}}})
	if err != nil {
		t.Fatal(err)
	}
	const keys, rounds = 50, 200
	s := db.Store("s")
	round := func(n int) {
		for i := range keys {
			s.Put(fmt.Appendf(nil, "%03d", i), fmt.Append(nil, n))
		}
		if err := db.Apply(db.Freeze(), []int64{int64(n)}); err != nil {
			t.Error(err)
		}
	}
	round(1)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			last := 0
			for {
				values := map[string]int{}
				it := s.AppliedRange(nil, nil)
				for it.Next() {
					values[string(it.Value())]++
				}
				if err := errors.Join(it.Err(), it.Close()); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				var now int
				for v := range values {
					_, _ = fmt.Sscan(v, &now)
				}
				if len(values) != 1 || now < last {
					t.Errorf("one scan, after round %d: %v", last, values)
				}
				last = now
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := 2; n <= rounds; n++ {
		round(n)
	}
	close(done)
	readers.Wait()
	mustClose(t, db)
}
