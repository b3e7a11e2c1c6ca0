package leave

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

func openJournal(t *testing.T, dir string, start int64) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, time.UnixMilli(start), 7, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJournalKeepsTheIncarnationOnlyWhileDraining(t *testing.T) {
	dir := t.TempDir()
	order := Order{Deadline: At(time.UnixMilli(5000)), By: "ops", Since: time.UnixMilli(1500).UTC()}

	j := openJournal(t, dir, 1000)
	if j.Resumed() != nil || j.Incarnation() != (assign.Incarnation{StartMs: 1000, Random: 7}) {
		t.Fatalf("a first start is fresh: %+v", j)
	}
	if err := j.Save(order); err != nil {
		t.Fatal(err)
	}

	for starts := uint32(1); starts <= 2; starts++ {
		j = openJournal(t, dir, 2000)
		if want := (assign.Incarnation{StartMs: 1000, Random: 7, Starts: starts}); j.Incarnation() != want {
			t.Fatalf("restart %d: incarnation %s, want %s", starts, j.Incarnation(), want)
		}
		if j.Resumed() == nil || *j.Resumed() != order {
			t.Fatalf("restart %d: order %+v, want %+v", starts, j.Resumed(), order)
		}
	}

	if err := j.Clear(); err != nil {
		t.Fatal(err)
	}
	if err := j.Clear(); err != nil {
		t.Errorf("clearing twice: %v", err)
	}
	if j = openJournal(t, dir, 3000); j.Resumed() != nil || j.Incarnation().StartMs != 3000 {
		t.Fatalf("after a cancelled leave a start is fresh: %+v", j)
	}

	if err := j.Close(order, "drained"); err != nil {
		t.Fatal(err)
	}
	rec, err := ReadRecord(dir)
	if err != nil || rec.Left != "drained" || rec.Incarnation != j.Incarnation() {
		t.Fatalf("record of a run that left: %+v, %v", rec, err)
	}
	if j = openJournal(t, dir, 4000); j.Resumed() != nil || j.Incarnation().StartMs != 4000 {
		t.Fatalf("after a finished leave a start is fresh: %+v", j)
	}
	if _, err := ReadRecord(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a fresh start keeps no record of the run before: %v", err)
	}
}

func TestJournalPutsGarbageAside(t *testing.T) {
	for _, content := range []string{
		"", "garbage", "{}", `{"v":1}`, `{"v":2,"incarnation":"1-0-0","order":{"deadline":"none"}}`,
		`{"v":1,"incarnation":"x","order":{"deadline":"none"}}`,
		`{"v":1,"incarnation":"1-0000000000000000-0","order":{"deadline":"soon"}}`,
		`{"v":1,"incarnation":"1-0000000000000000-0","order":{}}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, JournalFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if j := openJournal(t, dir, 9); j.Resumed() != nil || j.Incarnation().StartMs != 9 {
			t.Errorf("%q was followed: %+v", content, j)
		}
		if kept, err := os.ReadFile(path + ".bad"); err != nil || string(kept) != content {
			t.Errorf("%q was not put aside: %q, %v", content, kept, err)
		}
	}
}

// An interrupted write leaves a temporary file, which nobody reads.
func TestJournalSurvivesAnInterruptedWrite(t *testing.T) {
	dir := t.TempDir()
	if err := openJournal(t, dir, 1).Save(Order{Deadline: Never}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, JournalFile+".tmp"), []byte(`{"v":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if j := openJournal(t, dir, 2); j.Resumed() == nil || j.Resumed().Deadline != Never {
		t.Fatalf("the drain is lost: %+v", j)
	}
}
