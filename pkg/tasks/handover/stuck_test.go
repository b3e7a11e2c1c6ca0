package handover_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// stuckWatch is a watch for one copy; time passes in minutes.
type stuckWatch struct {
	*testing.T
	handover.Stuck
	now  time.Time
	copy *handover.Copy // nil: none at work
}

func newStuckWatch(t *testing.T) *stuckWatch {
	return &stuckWatch{T: t, Stuck: handover.Stuck{After: 10 * time.Minute}, now: time.Unix(0, 0)}
}

// pass lets minutes pass and returns in how many of them the copy counted as stuck, and the last reason.
func (w *stuckWatch) pass(minutes int, each func()) (stuck int, reason string) {
	w.Helper()
	task := assign.TaskID{Partition: 3}
	for range minutes {
		w.now = w.now.Add(time.Minute)
		if each != nil {
			each()
		}
		if w.copy != nil {
			w.Watch(task, *w.copy, w.now)
		}
		list := w.At(w.now, func(assign.TaskID) bool { return w.copy != nil })
		if len(list) > 1 || len(list) == 1 && list[0].Task != task {
			w.Fatalf("stuck: %v", list)
		}
		for _, c := range list {
			stuck, reason = stuck+1, c.Reason
		}
	}
	return stuck, reason
}

func (w *stuckWatch) expect(what string, got, want int) {
	w.Helper()
	if got != want {
		w.Errorf("%s: stuck for %d minutes, want %d", what, got, want)
	}
}

func TestStuckWithoutProgress(t *testing.T) {
	w := newStuckWatch(t)
	w.copy = &handover.Copy{}
	n, _ := w.pass(100, func() { w.copy.Position++ })
	w.expect("slow but sure", n, 0)
	n, _ = w.pass(9, nil)
	w.expect("not long enough", n, 0)
	n, reason := w.pass(5, nil)
	w.expect("stuck", n, 5)
	if !strings.Contains(reason, "has not come on for 10m0s") {
		t.Error(reason)
	}
	n, _ = w.pass(1, func() { w.copy.Position++ })
	w.expect("it comes on again", n, 0)
}

// Given to somebody else, the copy counts as stuck for a time that doubles: two instances that both cannot have it do not
// throw it to each other.
func TestStuckBacksOff(t *testing.T) {
	w := newStuckWatch(t)
	for _, want := range []int{10, 20, 40, 80} {
		w.copy = &handover.Copy{Position: 7}
		for n := 0; n == 0; {
			n, _ = w.pass(1, nil)
		}
		w.copy = nil
		n, _ := w.pass(100, nil)
		w.expect("afterwards", n, want-1)
	}
	w.copy = &handover.Copy{Position: 8, Ready: true}
	w.pass(1, nil)
	w.copy = &handover.Copy{Position: 8}
	w.pass(11, nil)
	w.copy = nil
	n, _ := w.pass(100, nil)
	w.expect("after it had caught up", n, 9)
}

func TestStuckFailures(t *testing.T) {
	w := newStuckWatch(t)
	w.copy = &handover.Copy{Err: errors.New("no space left on device")}
	// It moves between two failures, and does not get there.
	n, reason := w.pass(12, func() { w.copy.Failures++; w.copy.Position = int64(w.copy.Failures % 3) })
	w.expect("failing", n, 3)
	if !strings.Contains(reason, "no space left on device") {
		t.Error(reason)
	}
	w.copy = &handover.Copy{Position: -1, Failures: 2}
	n, _ = newStuckWatch(t).pass(1, nil)
	w.expect("another instance", n, 0)
}

// The machine asks for a round when a copy at work gets stuck, reports it until told otherwise, and then asks for a round again.
func TestStuckReport(t *testing.T) {
	m := handover.New()
	task := assign.TaskID{Partition: 3}
	m.Adopt(handover.Lease{Member: "a", Generation: 1}, assign.MemberPlan{Learn: []assign.TaskID{task}})
	if m.SetStuck(nil); m.TakeRoundRequest() {
		t.Error("a round for nothing")
	}
	if m.SetStuck([]assign.TaskID{task}); !m.TakeRoundRequest() {
		t.Error("no round")
	}
	if got := m.Report().Stuck; !slices.Equal(got, []assign.TaskID{task}) {
		t.Errorf("reports %v", got)
	}
	m.Adopt(handover.Lease{Member: "a", Generation: 2}, assign.MemberPlan{})
	if m.SetStuck(nil); !m.TakeRoundRequest() || len(m.Report().Stuck) > 0 {
		t.Error("the task may have a copy here again: no round, or it is still reported")
	}
}
