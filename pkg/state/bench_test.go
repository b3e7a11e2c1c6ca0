package state

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kgo"
)

// cpu returns the processor time that this process has used, compactions and all; it says more than the
// wall clock on a machine that does other things as well.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func reportCPU(b *testing.B, from time.Duration) {
	b.ReportMetric(float64(cpu(b)-from)/float64(b.N), "cpu-ns/op")
}

// benchKeys returns n distinct keys.
func benchKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user-%08d", i)
	}
	return keys
}

func count(b *testing.B, s *Store, key []byte) {
	var buf [8]byte
	v, ok, err := s.Get(key)
	if err != nil {
		b.Fatal(err)
	}
	if ok {
		binary.BigEndian.PutUint64(buf[:], binary.BigEndian.Uint64(v)+1)
	} else {
		binary.BigEndian.PutUint64(buf[:], 1)
	}
	s.Put(key, buf[:])
}

// BenchmarkCount is a count aggregate over random keys, frozen and applied every 50,000 records. The rows
// fit into the cache, or a quarter of them does; the keys are new, or were there before.
func BenchmarkCount(b *testing.B) {
	const keys = 1_000_000
	for _, bench := range []struct {
		name   string
		rows   int64
		blocks int64
		warm   bool
	}{
		{"new-keys", 1 << 30, 128 << 20, false},
		{"cached", 1 << 30, 128 << 20, true},
		{"quarter-cached", 16 << 20, 128 << 20, true},
		{"quarter-cached-few-blocks", 16 << 20, 16 << 20, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e := testEngine(b, Config{Dir: b.TempDir(), FS: vfs.Default, RowCacheBytes: bench.rows, BlockCacheBytes: bench.blocks})
			db := testOpen(b, e, "0_0")
			s := db.Store("s")
			all := benchKeys(keys)
			rng := rand.New(rand.NewPCG(1, 2))
			if bench.warm {
				for i, k := range all {
					count(b, s, k)
					if i%50_000 == 49_999 {
						applyAll(b, db)
					}
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu(b)
			for i := range b.N {
				count(b, s, all[rng.IntN(keys)])
				if i%50_000 == 49_999 {
					applyAll(b, db)
				}
			}
			b.StopTimer()
			reportCPU(b, start)
			b.ReportMetric(float64(s.rows.used.Load())/float64(max(1, s.rows.live)), "bytes/row")
		})
	}
}

// BenchmarkFirstSight counts keys that were never seen before, most of which have left the cache, with
// and without the filter of known keys.
func BenchmarkFirstSight(b *testing.B) {
	for _, filtered := range []bool{true, false} {
		b.Run(fmt.Sprintf("filter=%v", filtered), func(b *testing.B) {
			e := testEngine(b, Config{Dir: b.TempDir(), FS: vfs.Default, RowCacheBytes: 16 << 20})
			db := testOpen(b, e, "0_0")
			s := db.Store("s")
			if !filtered {
				s.forget()
			}
			rng := rand.New(rand.NewPCG(1, 2))
			key := make([]byte, 16)
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu(b)
			for i := range b.N {
				binary.BigEndian.PutUint64(key, rng.Uint64())
				count(b, s, key)
				if i%50_000 == 49_999 {
					applyAll(b, db)
				}
			}
			reportCPU(b, start)
		})
	}
}

// BenchmarkHit is one read and one write of a cached row.
func BenchmarkHit(b *testing.B) {
	e := testEngine(b, Config{})
	s := testOpen(b, e, "0_0").Store("s")
	all := benchKeys(100_000)
	for _, k := range all {
		count(b, s, k)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		count(b, s, all[i*7919%len(all)])
	}
}

// BenchmarkGC is one garbage collection with a million rows in memory.
func BenchmarkGC(b *testing.B) {
	e := testEngine(b, Config{RowCacheBytes: 1 << 30})
	s := testOpen(b, e, "0_0").Store("s")
	for _, k := range benchKeys(1_000_000) {
		count(b, s, k)
	}
	for b.Loop() {
		runtime.GC()
	}
}

// BenchmarkApplyChangelog restores random updates of a million keys in batches of the given size; ns/op
// is per record.
func BenchmarkApplyChangelog(b *testing.B) {
	for _, size := range []int{100, 20_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			e := testEngine(b, Config{Dir: b.TempDir(), FS: vfs.Default})
			db := testOpen(b, e, "0_0")
			all := benchKeys(1_000_000)
			rng := rand.New(rand.NewPCG(1, 2))
			recs := make([]*kgo.Record, size)
			for i := range recs {
				recs[i] = &kgo.Record{Value: []byte("12345678")}
			}
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu(b)
			for n := 0; n < b.N; n += size {
				for i, r := range recs {
					r.Key, r.Offset = all[rng.IntN(len(all))], int64(n+i)
				}
				if err := db.ApplyChangelog(0, recs, int64(n+size), 1<<40); err != nil {
					b.Fatal(err)
				}
			}
			reportCPU(b, start)
		})
	}
}
