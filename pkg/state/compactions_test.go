package state

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB has work for the given number of compactions.
type fakeDB struct {
	work    int
	allowed int
	granted int
}

func (f *fakeDB) GetAllowedWithoutPermission() int { return f.allowed }
func (f *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return f.work > 0, pebble.WaitingCompaction{}
}
func (f *fakeDB) Schedule(pebble.CompactionGrantHandle) bool {
	f.work--
	f.granted++
	return true
}

// TestCompactionsWaitInLine: who is refused gets the next free place, in order and not after it is gone.
func TestCompactionsWaitInLine(t *testing.T) {
	all := newCompactions(1)
	var fakes [4]fakeDB
	var dbs [4]*dbCompactions
	for i := range fakes {
		fakes[i] = fakeDB{work: 2, allowed: 1}
		dbs[i] = &dbCompactions{all: all}
		dbs[i].Register(1, &fakes[i])
		if ok, _ := dbs[i].TrySchedule(); ok != (i == 0) {
			t.Fatalf("database %d may compact: %v", i, ok)
		}
	}
	dbs[2].Unregister()
	fakes[3].work = 0 // done by other means meanwhile
	want := func(what string, granted ...int) {
		t.Helper()
		for i, n := range granted {
			if fakes[i].granted != n {
				t.Errorf("%s: database %d got %d grants, want %d", what, i, fakes[i].granted, n)
			}
		}
		if all.running > 1 {
			t.Errorf("%s: %d run at once", what, all.running)
		}
	}
	dbs[0].Done()
	want("the first in line", 0, 1, 0, 0)
	all.grant()
	want("no place is free", 0, 1, 0, 0)
	dbs[1].Done()
	want("its second compaction", 0, 2, 0, 0)
	dbs[1].Done()
	want("nothing more to do", 0, 2, 0, 0)
	if all.running != 0 || len(all.line) != 0 {
		t.Errorf("%d run and %d wait at the end", all.running, len(all.line))
	}
	if ok, _ := dbs[2].TrySchedule(); ok {
		t.Error("a database that is gone may compact")
	}
}
