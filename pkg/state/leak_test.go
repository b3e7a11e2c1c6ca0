package state

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOpenCloseLeaksNothing opens and closes tasks a thousand times, with iterators left open, flushes, reads from
// tables and writes that were not applied, and looks for goroutines, files, blocks and bytes that are left.
func TestOpenCloseLeaksNothing(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here")
		}
		return len(list)
	}
	goroutines, open := runtime.NumGoroutine(), files()
	dir := t.TempDir()
	var e *Engine
	for i := range rounds {
		if i%100 == 0 {
			e = testEngine(t, Config{Dir: dir, FS: vfs.Default, BlockCacheBytes: 1 << 20, RowCacheBytes: 1})
		}
		db := testOpen(t, e, fmt.Sprintf("0_%d", i%7))
		put(t, db, 10)
		if i%3 == 0 {
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		it := db.Store("s").Range(nil, nil)
		for range i % 4 {
			it.Next()
		}
		if i%2 == 0 {
			mustClose(t, it) // else the database does
		}
		db.Store("s").Put([]byte("dropped"), nil)
		if i%5 == 0 {
			db.Freeze()
		}
		mustClose(t, db)
		mustClose(t, it)
		if n, m := e.unflushed.Load(), e.rows.used.Load(); n != 0 || m != 0 {
			t.Fatalf("with nothing open, %d bytes count as to be flushed and %d as rows in memory", n, m)
		}
		if i%100 == 99 {
			mustClose(t, e)
		}
	}
	// What Pebble has told to end may take a moment.
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > goroutines || files() > open {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("after %d rounds %d goroutines and %d files are left, before there were %d and %d\n%s",
				rounds, runtime.NumGoroutine(), files(), goroutines, open, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}
