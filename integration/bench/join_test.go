package main

import (
	"testing"
	"time"
)

func saying(texts ...string) *process {
	p := &process{name: "c"}
	for i, text := range texts {
		p.lines = append(p.lines, line{time.UnixMilli(int64(i)), text})
	}
	return p
}

func TestLearned(t *testing.T) {
	for _, c := range []struct {
		name    string
		of      instance
		since   time.Time
		records int64
		at      int64 // number of the line
	}{
		{"warm-up tasks, which become active later", peerInstance{saying("running active=0", "learned records=40 ms=7", "learned records=2 ms=1", "restored records=5 ms=3", "running active=2")}, time.Time{}, 42, 2},
		{"tasks that are moved at once", peerInstance{saying("running active=0", "restored records=0 ms=1", "restored records=50 ms=9", "running active=2")}, time.Time{}, 50, 2},
		{"tasks that are taken", workerInstance{process: saying(`{"msg":"running"}`, `{"msg":"restored","records":30}`, `{"msg":"restored","records":12}`, `{"msg":"handover"}`)}, time.Time{}, 42, 2},
		{"what was restored before is left out", peerInstance{saying("restored records=7 ms=1", "running active=1", "restored records=50 ms=9")}, time.UnixMilli(1), 50, 2},
		{"tasks that were taken before are left out", workerInstance{process: saying(`{"msg":"restored","records":30}`, `{"msg":"restored","records":12}`)}, time.UnixMilli(1), 12, 1},
	} {
		records, at, err := c.of.learned(c.since)
		if err != nil || records != c.records || at.UnixMilli() != c.at {
			t.Errorf("%s: %d records at %d, %v; want %d at %d", c.name, records, at.UnixMilli(), err, c.records, c.at)
		}
	}
	for _, of := range []instance{peerInstance{saying("running active=0")}, workerInstance{process: saying(`{"msg":"running"}`)}} {
		if records, _, err := of.learned(time.Time{}); err == nil {
			t.Errorf("%d records, though it has learned nothing", records)
		}
	}
}

func TestTrackLoad(t *testing.T) {
	tr := &track{all: []usage{{at: time.UnixMilli(0), cpu: 1}, {at: time.UnixMilli(1000), cpu: 3}, {at: time.UnixMilli(3000), cpu: 4}}}
	for over, want := range map[time.Duration]float64{2 * time.Second: 0.5, 3 * time.Second: 1, time.Hour: 1} {
		if got := tr.load(over); got != want {
			t.Errorf("%v over the last %v, want %v", got, over, want)
		}
	}
	if got := new(track).load(time.Second); got != 0 {
		t.Errorf("%v of a process that was never seen", got)
	}
}

func TestTrackUntil(t *testing.T) {
	tr := &track{all: []usage{{at: time.UnixMilli(10), cpu: 1}, {at: time.UnixMilli(20), cpu: 2}, {at: time.UnixMilli(30), cpu: 3}}}
	for at, want := range map[int64]float64{0: 1, 10: 1, 11: 2, 30: 3, 99: 3} {
		if got := tr.until(time.UnixMilli(at)); got.cpu != want {
			t.Errorf("%v s at %d ms, want %v", got.cpu, at, want)
		}
	}
	if got := new(track).until(time.UnixMilli(1)); got.cpu != 0 {
		t.Errorf("%v s of a process that was never seen", got.cpu)
	}
}
