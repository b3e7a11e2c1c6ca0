package state

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func testEngine(t testing.TB, cfg Config) *Engine {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = "state"
	}
	if cfg.FS == nil {
		cfg.FS = vfs.NewMem()
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	if cfg.BallastBytes == 0 {
		cfg.BallastBytes = -1
	}
	e, err := NewEngine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func testOpen(t testing.TB, e *Engine, task string) *DB {
	t.Helper()
	db, err := e.Open(task, []StoreSpec{{Name: "s", Changelog: "app-s-changelog", TopicID: [16]byte{7}}})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func applyAll(t testing.TB, db *DB) {
	t.Helper()
	c := db.Freeze()
	if err := db.Apply(c, []int64{db.Checkpoint()[0] + int64(c.Len())}); err != nil {
		t.Fatal(err)
	}
}

// TestRowsStayWithinTheBudget writes far more than fits, and looks at one table alone, at what is not
// applied, and at tables that share.
func TestRowsStayWithinTheBudget(t *testing.T) {
	const limit = 256 << 10
	e := testEngine(t, Config{RowCacheBytes: limit})
	db := testOpen(t, e, "0_0")
	s := db.Store("s")
	fill := func(s *Store, from, n int) {
		for i := range n {
			s.Put(fmt.Appendf(nil, "key-%08d", from+i), []byte("a value of some bytes"))
		}
	}
	for round := range 20 {
		fill(s, round*1000, 1000)
		applyAll(t, db)
	}
	if used := s.rows.used.Load(); used > limit+2*maxPage || used < limit/2 {
		t.Errorf("one table uses %d bytes of a budget of %d", used, limit)
	}

	fill(s, 0, 12500)
	if used := s.rows.used.Load(); used < 12500*40 {
		t.Errorf("12500 rows that are not applied use only %d bytes", used)
	}
	applyAll(t, db)
	for range 100 { // gives back a bounded number of pages each time
		db.Freeze()
	}
	if used := s.rows.used.Load(); used > 2*limit {
		t.Errorf("after Apply the table still uses %d bytes", used)
	}

	other := testOpen(t, e, "0_1")
	for round := range 20 {
		fill(s, round*1000, 1000)
		applyAll(t, db)
		fill(other.Store("s"), round*1000, 1000)
		applyAll(t, other)
	}
	for _, used := range []int64{s.rows.used.Load(), other.Store("s").rows.used.Load()} {
		if used < limit/4 || used > limit*3/4 {
			t.Errorf("two busy tables do not share evenly: one has %d of %d", used, limit)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	sum := s.rows.used.Load()
	if s.keys != nil {
		sum += s.keys.size.Load()
	}
	if used := e.rows.used.Load(); used != sum {
		t.Errorf("the budget counts %d bytes, the only open store has %d", used, sum)
	}
}
