package main

import (
	"reflect"
	"testing"
	"time"
)

func TestCPUSeconds(t *testing.T) {
	got, err := cpuSeconds("42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 20 5 20 0 9 0 100 0 0\n")
	if err != nil || got != 3.25 {
		t.Errorf("%v, %v; want 3.25: 250, 50, 20 and 5 ticks", got, err)
	}
	for _, wrong := range []string{"", "42 (a) S 1 2", "42 (a) S 1 42 42 0 -1 4194304 100 0 0 0 x 50 20 5 20 0"} {
		if _, err := cpuSeconds(wrong); err == nil {
			t.Errorf("%q can be read", wrong)
		}
	}
}

func TestStatusMiB(t *testing.T) {
	const status = "Name:\tjava\nVmHWM:\t  524288 kB\nVmRSS:\t   2048 kB\n"
	if got := statusMiB(status, "VmHWM:"); got != 512 {
		t.Errorf("VmHWM is %v MiB, want 512", got)
	}
	if got := statusMiB(status, "VmSwap:"); got != 0 {
		t.Errorf("what is not there is %v", got)
	}
}

func TestParseGrowth(t *testing.T) {
	got, err := parseGrowth("goos: linux\nBenchmarkGrowth/100_members,_1000_tasks-2         \t     855\t   1402356 ns/op\t  524288 B/op\t    4211 allocs/op\n" +
		"BenchmarkGrowth/100_members,_10000_tasks \t 10\t 2.5e+07 ns/op\nBenchmarkGrowth/x \t 10\t 12.5 ns/op\t 0 B/op\t 0 allocs/op\nPASS\n")
	want := []growth{{"100 members, 1000 tasks", 1.402356, 0.5, 4211}, {"x", 1.25e-05, 0, 0}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := parseGrowth("PASS\n"); err == nil {
		t.Error("an output without benchmarks is fine")
	}
}

func TestKeys(t *testing.T) {
	for _, i := range []int{0, 7, 1_000_000, 123_456_789} {
		if got, ok := keyIndex(keyName(i)); !ok || got != i {
			t.Errorf("key %d is %s, and that is %d, %v", i, keyName(i), got, ok)
		}
	}
	for _, wrong := range []string{"", "key-", "kex-0000001", "key-00x0001", "key--000001", "key-99999999999999999999"} {
		if i, ok := keyIndex([]byte(wrong)); ok {
			t.Errorf("%q is key %d", wrong, i)
		}
	}
}

func TestDrawsRepeat(t *testing.T) {
	a, b := draws(1000), draws(1000)
	for range 100 {
		if x, y := a(), b(); x != y || x < 0 || x >= 1000 {
			t.Fatalf("drew %d and %d of 1000", x, y)
		}
	}
}

func TestCompareCounts(t *testing.T) {
	got := newTable(plainKeys(4))
	got.counts = []int64{1, 0, 4, 4}
	if err := got.compare([]int64{1, 0, 4, 4}); err != nil {
		t.Error(err)
	}
	err := got.compare([]int64{1, 2, 3, 4})
	const want = `wrong results: 2 records are missing from the counts, 1 were counted too often, such as "key-0000001": 0 instead of 2`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A stall that is under way when a period begins belongs to it as a whole, and one that has not ended counts.
func TestFlow(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }
	f := flow{last: at(0)}
	f.arrive(at(30), at(10))
	f.arrive(at(130), at(100))
	f.arrive(at(140), at(139))
	if got := f.longest(at(150)); got != 100*time.Millisecond || f.slowest != 30*time.Millisecond {
		t.Errorf("longest gap %v, slowest record %v; want 100ms and 30ms", got, f.slowest)
	}
	if got := f.longest(at(440)); got != 300*time.Millisecond {
		t.Errorf("longest gap %v while nothing has come for 300ms", got)
	}
}

func TestSettings(t *testing.T) {
	s, err := parseSettings([]string{"-workloads", "count,floor", "-commits", "500ms,2s", "-peer-conf", "linger.ms=5,batch.size=65536", "-peer-jvm", "-Xmx2g -XX:+UseZGC"})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.workloads, []string{"count", "floor"}) || !reflect.DeepEqual(s.commits, []time.Duration{500 * time.Millisecond, 2 * time.Second}) ||
		len(s.peerConf) != 2 || len(s.jvm) != 2 || s.pairs != 3 {
		t.Errorf("%+v", s)
	}
	for _, wrong := range [][]string{{"-workloads", "cuont"}, {"-pairs", "0"}, {"-commits", "5"}, {"-peer-conf", "linger.ms"}, {"count"}} {
		if _, err := parseSettings(wrong); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
