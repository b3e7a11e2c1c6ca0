package main

import (
	"strings"
	"testing"
	"time"
)

// countRun is a run of the workload count.
func countRun(side string, pair int, rate, peak float64) run {
	return run{Workload: "count", Case: "10 keys, at_least_once", Side: side, Pair: pair, Figures: map[string]float64{perCPU.key: rate, peakMemory.key: peak}}
}

func find(t *testing.T, rows []row, name string) row {
	t.Helper()
	for _, r := range rows {
		if r.Figure == name {
			return r
		}
	}
	t.Fatalf("no row has the figure %q", name)
	return row{}
}

func TestSummarizeComparesWithinPairs(t *testing.T) {
	failed := countRun(workerSide, 4, 1, 1)
	failed.Failed = "wrong results"
	rows := summarize([]run{
		countRun(peerSide, 1, 100, 400), countRun(workerSide, 1, 600, 100),
		countRun(workerSide, 2, 800, 200), countRun(peerSide, 2, 200, 400),
		countRun(peerSide, 3, 50, 500), countRun(workerSide, 3, 450, 250),
		countRun(peerSide, 4, 1000, 1000), failed,
	})
	rate := find(t, rows, perCPU.name)
	if rate.Peer != (spread{Median: 150, Min: 50, Max: 1000, Runs: 4}) || rate.Worker != (spread{Median: 600, Min: 450, Max: 800, Runs: 3}) {
		t.Errorf("records per CPU second: %+v and %+v", rate.Peer, rate.Worker)
	}
	if rate.Advantage != 6 { // of 6, 4 and 9; that of the medians would be 4
		t.Errorf("records per CPU second: better by %v, want 6", rate.Advantage)
	}
	if peak := find(t, rows, peakMemory.name); peak.Advantage != 2 { // of 4, 2 and 2: less is better
		t.Errorf("peak memory: better by %v, want 2", peak.Advantage)
	}
	if wall := find(t, rows, wallTime.name); wall.Peer.Runs != 0 || wall.Advantage != 0 {
		t.Errorf("what was not measured is %+v", wall)
	}
}

// Each side counts with the settings that are best for it in the workload's first figure.
func TestSummarizeTakesTheBestVariant(t *testing.T) {
	stalls := func(side, variant string, pair int, ms, leave float64) run {
		return run{Workload: "scalein", Case: "c", Side: side, Variant: variant, Pair: pair, Figures: map[string]float64{stall.key: ms, leaveTime.key: leave}}
	}
	rows := summarize([]run{
		stalls(peerSide, "classic", 1, 6000, 1), stalls(peerSide, "streams", 1, 5000, 3), stalls(workerSide, "", 1, 50, 4),
		stalls(peerSide, "classic", 2, 4000, 1), stalls(peerSide, "streams", 2, 4800, 3), stalls(workerSide, "", 2, 100, 4),
		stalls(peerSide, "classic", 3, 9000, 1), stalls(peerSide, "streams", 3, 4600, 3), stalls(workerSide, "", 3, 40, 4),
	})
	longest := find(t, rows, stall.name)
	if longest.Peer.Variant != "streams" || longest.Peer.Median != 4800 || longest.Advantage != 100 {
		t.Errorf("longest stall: %+v, want that of streams", longest)
	}
	if leave := find(t, rows, leaveTime.name); leave.Peer.Median != 3 || leave.Advantage != 0.75 {
		t.Errorf("time to leave: %+v, want that of the same runs", leave)
	}
}

func TestMarkdown(t *testing.T) {
	r := &report{
		Began: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Settings: map[string]string{"pairs": "2"},
		Runs: []run{
			countRun(peerSide, 1, 1000, 400), countRun(workerSide, 1, 9000, 100), countRun(workerSide, 2, 9500, 200), countRun(peerSide, 2, 1000, 400),
			{Workload: floorCommand, Case: "10 keys", Side: copyFloor, Pair: 1, Figures: map[string]float64{perCPU.key: 18_500}},
			{Workload: "filter", Case: "c", Side: peerSide, Pair: 2, Failed: "it ended too early"},
		},
		Growth: []growth{{Case: "100 members", Millis: 1.5, MiB: 0.25, Allocs: 12}},
	}
	r.Rows = summarize(r.Runs)
	text := r.markdown()
	for _, want := range []string{
		"# streamworker and Kafka Streams, 2026-01-02 03:04 UTC\n",
		"- pairs: 2\n",
		"## count: 10 keys, at_least_once\n\n| | Kafka Streams | streamworker | streamworker is better by |\n| --- | --- | --- | --- |\n" +
			"| records per CPU second | 1,000 (1,000 to 1,000) | 9,250 (9,000 to 9,500) | 9.25x |\n",
		"| peak memory, MiB | 400 (400 to 400) | 150 (100 to 200) | 3.00x |\n",
		"| CPU seconds | - | - | - |\n",
		"| bare loop, 10 keys | 18,500 | - | - | 2.00x | - |\n",
		"| 100 members | 1.50 | 0.250 | 12 |\n",
		"- filter, c, Kafka Streams, pair 2: it ended too early\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no\n%s\nIt is\n%s", want, text)
		}
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1234: "0.123", 3.14159: "3.14", 31.4159: "31.4", 314.159: "314", 3141.59: "3,142", 1234567: "1,234,567"} {
		if got := digits(v); got != want {
			t.Errorf("digits(%v) = %q, want %q", v, got, want)
		}
	}
}
