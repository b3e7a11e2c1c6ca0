package tasks

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// statusOf is what the instance shows of a task.
func (r *rig) statusOf(partition int32) TaskStatus {
	for _, ts := range r.m.Status().Tasks {
		if ts.Task == id(partition) {
			return ts
		}
	}
	return TaskStatus{}
}

func TestStatusTellsWhyATaskIsNotOpened(t *testing.T) {
	r := newRig(t, countStreams, 2)
	away := errors.New("nobody answers")
	var broken atomic.Bool
	broken.Store(true)
	r.logs.intercept(func(what string, parts []TopicPartition) error {
		if what == "ends" && broken.Load() && parts[0].Partition == 1 {
			return away
		}
		return nil
	})
	r.start()
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.await("the status tells of two attempts", func() bool {
		ts := r.statusOf(1)
		return errors.Is(ts.Err, away) && ts.Failures >= 2
	})
	if ts := r.statusOf(0); ts.Err != nil {
		t.Errorf("the other task: %+v", ts)
	}
	broken.Store(false)
	r.awaitPhase(id(1), handover.Running)
	r.await("the failure is forgotten", func() bool { ts := r.statusOf(1); return ts.Err == nil && ts.Failures == 0 })
}

// The time of the threads is counted: it is more than nothing, and not more than has passed.
func TestBusy(t *testing.T) {
	since := time.Now()
	r := newRig(t, countStreams, 1).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	if busy := r.m.Totals().Busy; busy != 0 {
		t.Errorf("before the first record: %v", busy)
	}
	r.send(0, 1, 100)
	r.await("records are processed", func() bool { return r.m.Totals().RecordsIn > 0 })
	r.await("their time is counted", func() bool { return r.m.Totals().Busy > 0 })
	if busy, passed := r.m.Totals().Busy, time.Since(since); busy > passed {
		t.Errorf("one thread computed for %v of %v", busy, passed)
	}
}

func TestStatusTellsOfABadRecord(t *testing.T) {
	r := newRig(t, strings.Replace(countStreams, "- count:", "- filter: int(value) > 0\n    - count:", 1), 1).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	r.send(0, 1, 1) // its value is no number
	r.await("the status tells of two attempts", func() bool {
		ts := r.statusOf(0)
		return ts.Err != nil && strings.Contains(ts.Err.Error(), "offset 0") && ts.Failures >= 2
	})
	if n := r.m.Totals().Failures; n < 2 {
		t.Errorf("%d failures are counted", n)
	}
}

// TestFullDiskUnderOneTask: the task fails, backs off and says so; the other goes on. With space again, nothing is
// lost and nothing counted twice.
func TestFullDiskUnderOneTask(t *testing.T) {
	var full atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "0_1/") && strings.HasSuffix(op.Path, ".sst") {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	engine, err := state.NewEngine(state.Config{Dir: "state", FS: disk, BallastBytes: -1, FlushBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	flushing, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- engine.Run(flushing) }()
	t.Cleanup(func() { stop(); <-done })

	r := newRig(t, countStreams, 2, func(c *Config) { c.Engine = engine }).start()
	r.plan(1, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	r.send(0, 100, 10)
	r.send(1, 100, 10)
	r.awaitCounts()

	full.Store(true)
	r.await("the status tells of two attempts in vain", func() bool {
		r.send(1, 1, 10)
		ts := r.statusOf(1)
		return errors.Is(ts.Err, syscall.ENOSPC) && ts.Failures >= 2
	})
	r.send(0, 100, 10)
	r.awaitCommitted(0, 200)
	if ts := r.statusOf(0); ts.Err != nil || ts.Phase != handover.Running {
		t.Errorf("the other task: %+v", ts)
	}

	full.Store(false)
	r.send(1, 100, 10)
	r.awaitCounts()
	r.await("the failure is forgotten", func() bool { return r.statusOf(1).Err == nil })
}

// The age of the snapshot tells whether the loop goes round.
func TestStatusIsRenewedByTheLoop(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	first := r.m.Status().At
	r.await("a newer snapshot", func() bool { return r.m.Status().At.After(first) })
	r.inside(func() {
		held := r.m.Status().At
		time.Sleep(3 * checkInterval)
		if at := r.m.Status().At; !at.Equal(held) {
			t.Errorf("a snapshot of %s while the loop was held since %s", at, held)
		}
	})
}
