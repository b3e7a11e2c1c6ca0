package state

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A scan sees what was written after the last one, what others have applied meanwhile, and what a changelog has brought.
func TestScanAfterWritesOfAllKinds(t *testing.T) {
	e := testEngine(t, Config{})
	db := testOpen(t, e, "0_0")
	s := db.Store("s")
	expect := func(want string) {
		t.Helper()
		got := ""
		if err := s.Scan([]byte("b"), []byte("e"), func(key, value []byte) bool {
			got += fmt.Sprintf("%s=%s ", key, value)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	expect("")
	if err := db.ApplyChangelog(0, []*kgo.Record{{Key: []byte("b"), Value: []byte("1")}, {Key: []byte("d"), Value: []byte("1"), Offset: 1}}, 2, 2); err != nil {
		t.Fatal(err)
	}
	expect("b=1 d=1 ")
	s.Put([]byte("c"), []byte("2"))
	s.Put([]byte("e"), []byte("2"))
	s.Delete([]byte("b"))
	expect("c=2 d=1 ")
	first := db.Freeze()
	s.Put([]byte("c"), []byte("3"))
	s.Delete([]byte("d"))
	expect("c=3 ")
	second := db.Freeze()
	s.Put([]byte("b"), []byte("4"))
	expect("b=4 c=3 ")
	if err := db.Apply(first, []int64{5}); err != nil {
		t.Fatal(err)
	}
	expect("b=4 c=3 ")
	if err := db.Apply(second, []int64{7}); err != nil {
		t.Fatal(err)
	}
	expect("b=4 c=3 ")
	db.Discard()
	expect("c=3 ")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Scan(nil, nil, func(_, _ []byte) bool { return true }); !errors.Is(err, ErrClosed) {
		t.Errorf("scan of a closed store: %v, want ErrClosed", err)
	}
}

// BenchmarkScan looks for the few rows of one key's prefix, while other rows are written and committed.
func BenchmarkScan(b *testing.B) {
	e := testEngine(b, Config{})
	db := testOpen(b, e, "0_0")
	s := db.Store("s")
	key := func(i, n int) []byte { return fmt.Appendf(nil, "key-%06d-%d", i, n) }
	for i := range 10_000 {
		for n := range 3 {
			s.Put(key(i, n), []byte("value"))
		}
	}
	if err := db.Apply(db.Freeze(), []int64{1}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for i := 0; b.Loop(); i++ {
		k := key(i*7919%10_000, 0)
		if err := s.Scan(k, key(i*7919%10_000, 9), func(_, _ []byte) bool { n++; return true }); err != nil {
			b.Fatal(err)
		}
		s.Put(k, []byte("value"))
		if i%1000 == 999 {
			if err := db.Apply(db.Freeze(), []int64{int64(i)}); err != nil {
				b.Fatal(err)
			}
		}
	}
	if n == 0 {
		b.Fatal("nothing found")
	}
}
