package main

import (
	"testing"
	"time"
)

// Every event has a window that it is counted in, none comes too late for it, and some are late.
func TestTimes(t *testing.T) {
	b := &bench{settings: &settings{records: 10_000}, report: &report{Began: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}}
	next, newest, late := b.times(), time.Time{}, 0
	for range b.records {
		at := next()
		if end := at.Truncate(windowSize).Add(windowSize); !newest.Before(end.Add(grace)) {
			t.Fatalf("%v comes after %v: its window is closed", at, newest)
		}
		if at.Before(newest) {
			late++
		} else {
			newest = at
		}
	}
	if late == 0 || late > b.records/lateOneIn*2 {
		t.Errorf("%d of %d are late", late, b.records)
	}
	if !newest.Before(b.report.Began) {
		t.Errorf("the newest one is of %v", newest)
	}
}

func TestWindowKeys(t *testing.T) {
	const keys = 7
	b := &bench{settings: &settings{records: 5000}, report: &report{Began: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}}
	space := b.windowKeys(keys)
	for i := range space.size {
		if got, ok := space.index(space.name(i)); !ok || got != i {
			t.Fatalf("the key %q of %d is that of %d, %v", space.name(i), i, got, ok)
		}
	}
	for _, name := range []string{"", "key-0000001", "key-0000009" + string(space.name(0)[len("key-0000000"):]), "key-0000001\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if i, ok := space.index([]byte(name)); ok {
			t.Errorf("%q is the key of %d", name, i)
		}
	}
	sum := int64(0)
	for _, n := range b.windowCounts(keys) {
		sum += n
	}
	if sum != int64(b.records) {
		t.Errorf("%d events are in windows, of %d", sum, b.records)
	}
}
