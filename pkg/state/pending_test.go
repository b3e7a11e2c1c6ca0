package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// inPebble is the value that Pebble holds.
func inPebble(t *testing.T, db *DB, key string) string {
	t.Helper()
	value, closer, err := db.pebble.Get(append(append([]byte(nil), db.stores[0].prefix...), key...))
	if err != nil {
		return ""
	}
	defer mustClose(t, closer)
	return string(value)
}

// applyOne writes a value and applies it at a position.
func applyOne(t *testing.T, db *DB, key, value string, position int64) {
	t.Helper()
	db.Store("s").Put([]byte(key), []byte(value))
	if err := db.Apply(db.Freeze(), []int64{position}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, db *DB, key string) string {
	t.Helper()
	value, _, err := db.Store("s").Get([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// TestAppliedGathers: what is applied is state at once, and gets to Pebble in one write, the last value of each key.
func TestAppliedGathers(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	e := testEngine(t, Config{Now: func() time.Time { return now }})
	db := testOpen(t, e, "0_0")
	applyOne(t, db, "a", "1", 1)
	applyOne(t, db, "b", "1", 2)
	applyOne(t, db, "a", "2", 3)
	db.Store("s").Delete([]byte("b"))
	if err := db.Apply(db.Freeze(), []int64{4}); err != nil {
		t.Fatal(err)
	}
	applyOne(t, db, "c", "", 5)
	if p := db.Checkpoint()[0]; p != 5 || inPebble(t, db, "a") != "" {
		t.Fatalf("position %d, want 5; Pebble has %q already", p, inPebble(t, db, "a"))
	}
	e.writeOld()
	if db.writes.Load() != 0 {
		t.Fatal("written before it is old")
	}
	now = now.Add(pendingAge)
	e.writeOld()
	if n := db.writes.Load(); n != 1 || inPebble(t, db, "a") != "2" || inPebble(t, db, "b") != "" {
		t.Fatalf("%d writes; Pebble has a %q and b %q", n, inPebble(t, db, "a"), inPebble(t, db, "b"))
	}
	if v, ok, err := db.Store("s").Get([]byte("c")); len(v) > 0 || !ok || err != nil {
		t.Errorf("an empty value became %q %v (%v)", v, ok, err)
	}
	e.writeOld()
	if n := db.writes.Load(); n != 1 {
		t.Errorf("written %d times", n)
	}
}

// TestManyAppliedAreWritten: what gathers is bounded by size, however fresh it is.
func TestManyAppliedAreWritten(t *testing.T) {
	e := testEngine(t, Config{MemtableBytes: 8 << 20})
	db := testOpen(t, e, "0_0")
	limit := e.pendingLimit()
	value := strings.Repeat("x", 1000)
	for i := range int64(3 * limit / 1000) {
		applyOne(t, db, fmt.Sprint(i), value, i+1)
		if n := db.mu.pendingBytes; n >= limit {
			t.Fatalf("%d bytes have gathered, more than %d", n, limit)
		}
	}
	if n := db.writes.Load(); n < 2 || n > 3 {
		t.Errorf("written %d times, want 2 or 3", n)
	}
}

// TestDiscardKeepsWhatWasApplied also without the write that it would have got later.
func TestDiscardKeepsWhatWasApplied(t *testing.T) {
	e := testEngine(t, Config{})
	db := testOpen(t, e, "0_0")
	applyOne(t, db, "a", "applied", 1)
	db.Store("s").Put([]byte("a"), []byte("frozen"))
	db.Freeze()
	db.Store("s").Put([]byte("a"), []byte("written"))
	db.Discard()
	if got, p := get(t, db, "a"), db.Checkpoint()[0]; got != "applied" || p != 1 {
		t.Errorf("after Discard: %q at %d", got, p)
	}
	mustClose(t, db)
	db = testOpen(t, e, "0_0")
	if got, p := get(t, db, "a"), db.Checkpoint()[0]; got != "applied" || p != 1 {
		t.Errorf("opened again: %q at %d", got, p)
	}
}

// TestReplayedGathers: changelog records get to Pebble together, and what reads rows sees them before.
func TestReplayedGathers(t *testing.T) {
	e := testEngine(t, Config{})
	db := testOpen(t, e, "0_0")
	record := func(offset int64, key, value string) *kgo.Record {
		r := &kgo.Record{Key: []byte(key), Offset: offset}
		if value != "" {
			r.Value = []byte(value)
		}
		return r
	}
	replay := func(next int64, recs ...*kgo.Record) {
		t.Helper()
		if err := db.ApplyChangelog(0, recs, next, 1000); err != nil {
			t.Fatal(err)
		}
	}
	replay(3, record(0, "a", "1"), record(1, "b", "1"), record(2, "a", "2"))
	replay(5, record(3, "", ""), record(4, "", "of an empty key"))
	replay(6, record(5, "b", ""))
	if n, p := db.writes.Load(), db.Checkpoint()[0]; n != 0 || p != 6 {
		t.Fatalf("%d writes, position %d", n, p)
	}
	for key, want := range map[string]string{"a": "2", "b": "", "": "of an empty key"} {
		if got, _, err := db.Store("s").Applied([]byte(key)); string(got) != want || err != nil {
			t.Errorf("beside the task, %q is %q (%v), want %q", key, got, err, want)
		}
	}
	wantRows(t, db, 2)
	for key, want := range map[string]string{"a": "2", "b": "", "": "of an empty key"} {
		if got := get(t, db, key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
	if n := db.writes.Load(); n != 1 {
		t.Errorf("%d writes after the first look at a key without a row, want 1", n)
	}
	replay(7, record(6, "a", "3"))
	if got := get(t, db, "a"); got != "3" {
		t.Errorf("a is %q, want 3", got)
	}
	applyOne(t, db, "a", "4", 8) // active now
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := inPebble(t, db, "a"); got != "4" {
		t.Errorf("Pebble has %q, want 4", got)
	}
}

// TestReplayedIsBounded: a long replay is written again and again, one that has caught up at once.
func TestReplayedIsBounded(t *testing.T) {
	e := testEngine(t, Config{MemtableBytes: 4 << 20})
	db := testOpen(t, e, "0_0")
	limit := e.replayLimit()
	var recs []*kgo.Record
	for i := range int64(1000) {
		recs = append(recs, &kgo.Record{Key: fmt.Appendf(nil, "%04d", i), Value: make([]byte, 1000), Offset: i})
	}
	next := int64(0)
	for db.writes.Load() < 3 {
		next += 1000
		if err := db.ApplyChangelog(0, recs, next, 1_000_000); err != nil {
			t.Fatal(err)
		}
		if n := db.mu.pendingBytes; n >= limit {
			t.Fatalf("%d bytes have gathered, more than %d", n, limit)
		}
	}
	if err := db.ApplyChangelog(0, recs[:100], next+1, next+1); err != nil {
		t.Fatal(err)
	}
	if n := db.writes.Load(); n != 4 {
		t.Errorf("%d writes after it has caught up, want 4", n)
	}
}

// TestDiscardOfFailedState falls back to what Pebble holds, with the positions of that.
func TestDiscardOfFailedState(t *testing.T) {
	e := testEngine(t, Config{})
	db := testOpen(t, e, "0_0")
	applyOne(t, db, "a", "flushed", 1)
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	applyOne(t, db, "a", "gathered", 2)
	db.fail(errors.New("the disk is gone"))
	db.Discard()
	if p := db.Checkpoint()[0]; p != 1 {
		t.Errorf("the position is %d, but the change at 2 was never written", p)
	}
	_ = db.Close() // it has failed
	db = testOpen(t, e, "0_0")
	if got, p := get(t, db, "a"), db.Checkpoint()[0]; got != "flushed" || p != 1 {
		t.Errorf("opened again: %q at %d", got, p)
	}
}
