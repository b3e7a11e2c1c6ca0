package instance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/leave"
)

// lateFile is a file of counts that are sent on at commits only.
func lateFile(file string) string {
	return strings.Replace(file, "count: {store: counts}", "count: {store: counts, emit: commit}", 1)
}

// Results at commits only are fewer than the records, and lose nothing when tasks move, the last ones included.
func TestResultsAtCommitAcrossADrain(t *testing.T) { underBoth(t, 8, testResultsAtCommitAcrossADrain) }

func testResultsAtCommitAcrossADrain(t *testing.T, b *bench) {
	b.file = lateFile(countFile)
	b.send(4000, 50) // already there: many records of a key at a time
	a := b.spread("a", "b")[0]
	stop := b.load()
	if err := a.Leave(context.Background(), leave.Default, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(a); !errors.Is(err, leave.ErrDrained) {
		t.Fatalf("a ended with %v, want drained", err)
	}
	stop()
	b.check()
	b.checkLate(b.outputs())
}

// checkLate wants the true counts as the last ones, no count twice, and not all of them.
func (b *bench) checkLate(out map[string][]int64) {
	b.t.Helper()
	var results, records int64
	for k, n := range b.sent {
		counts := out[k]
		records += n
		results += int64(len(counts))
		if len(counts) == 0 || counts[len(counts)-1] != n {
			b.t.Errorf("%s: counts %v, want %d at the end", k, counts, n)
		}
		for i := 1; i < len(counts); i++ {
			if counts[i] <= counts[i-1] {
				b.t.Errorf("%s: %d follows %d", k, counts[i], counts[i-1])
			}
		}
	}
	if results >= records {
		b.t.Errorf("%d results of %d records", results, records)
	}
	b.t.Logf("%d results of %d records", results, records)
}
