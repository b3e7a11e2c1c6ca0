package control

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Marks that are set together are one write, so that all instances hear of all of them at the same time.
func TestMarksAreOneWrite(t *testing.T) {
	c := fake(t)
	b, _ := bus(t, c.ListenAddrs())
	check(t, b.EnsureTopic(t.Context(), 1))
	var writes atomic.Int32
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		writes.Add(1)
		return nil, nil, false
	})
	for _, n := range []int{1, 100, 2} {
		marks := make([]Mark, n)
		for i := range marks {
			marks[i] = Mark{Instance: fmt.Sprintf("worker-%03d", i), Incarnation: run(1), Swap: "pool=blue -> pool=green"}
		}
		writes.Store(0)
		check(t, b.PutMarks(t.Context(), marks...))
		if got := writes.Load(); got != 1 {
			t.Errorf("%d marks: %d writes, want one", n, got)
		}
	}
	marks, err := b.ReadMarks(t.Context())
	check(t, err)
	if len(marks) != 100 || marks[7].Instance != "worker-007" || marks[7].Swap == "" {
		t.Errorf("%d marks, e.g. %+v", len(marks), marks[7])
	}
}
