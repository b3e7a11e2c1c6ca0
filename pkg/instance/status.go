package instance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

var errUnknownTask = errors.New("it is not part of this instance's topology: do all instances run the same file?")

// Status is what this instance shows of itself. It reads snapshots only and answers at once, also while
// the instance starts.
func (i *Instance) Status() control.Status {
	s := control.Status{
		Instance: i.id, Incarnation: i.incarnation(), State: control.Starting, Labels: maps.Clone(i.cfg.Labels), Capacity: i.cfg.Capacity, Address: i.address,
	}
	for _, sub := range i.cfg.Topology.Subtopologies {
		s.Sources = append(s.Sources, sub.Topics())
	}
	r := i.parts.Load()
	if r == nil {
		return s
	}
	ts := r.manager.Status()
	s.Member, s.Generation = ts.Member, ts.Generation
	for _, t := range ts.Tasks {
		id := t.Task.String()
		stuck := slices.ContainsFunc(ts.Stuck, func(c handover.StuckCopy) bool { return c.Task == t.Task })
		if t.Err != nil && !stuck {
			s.Fail(id, t.Err, t.Failures)
		}
		switch {
		case t.Phase == handover.Learning:
			s.Learning = append(s.Learning, control.Learning{Task: id, Lag: t.Lag, Ready: t.Ready})
		case t.Phase == handover.Standby:
			s.Standby = append(s.Standby, id)
		case t.Phase == handover.Taking:
			// Still its former owner's.
		default:
			s.Active = append(s.Active, id)
			if t.Lag >= 0 && t.Phase == handover.Running {
				if s.Lag == nil {
					s.Lag = map[string]int64{}
				}
				s.Lag[id] = t.Lag
			}
		}
	}
	for _, c := range ts.Stuck {
		s.Fail(c.Task.String(), errors.New(c.Reason), max(c.Failures, 1))
	}
	for _, t := range ts.Unknown {
		s.Fail(t.String(), errUnknownTask, 1)
	}
	s.Load.Threads = i.cfg.Threads
	if d := i.disk.Load(); d != nil {
		s.Load.StateBytes, s.Load.FreeBytes = d.state, d.free
	}
	for _, g := range ts.Globals {
		s.BadGlobal(g.Table, g.Records, g.Err)
	}
	view := r.leave.Snapshot()
	s.Left = leave.Reason(view.Left)
	if view.Phase >= leave.Draining {
		s.DeadlineMs = view.Deadline.UnixMilli()
	}
	s.State = i.stateOf(ts, view.Phase)
	i.recent.add(&s, r.manager.Totals(), time.Now())
	return s
}

func (i *Instance) stateOf(ts *tasks.Status, leaving leave.Phase) control.State {
	switch {
	case leaving >= leave.Drained:
		return control.Drained
	case i.stopping.Load():
		return control.Stopping
	case leaving == leave.Draining:
		return control.Draining
	case ts.Generation == 0:
		return control.Starting
	}
	return control.Running
}

// Ready says whether every task that is assigned to this instance runs.
func (i *Instance) Ready() bool {
	r := i.parts.Load()
	if r == nil || i.stopping.Load() {
		return false
	}
	ts := r.manager.Status()
	for _, t := range ts.Tasks {
		if t.Phase == handover.Opening || t.Err != nil {
			return false
		}
	}
	return ts.Leased && len(ts.Unknown) == 0
}

// liveLimit is how old the manager's snapshot may be. It is renewed ten times a second by the loop that everything goes
// through: one that is so much older means that the loop hangs, or that the host gives this process no time.
const liveLimit = 10 * time.Second

// Live says whether the task manager goes on. While the instance starts and stops, where each step has a bound of its own,
// it is true.
func (i *Instance) Live() bool {
	r := i.parts.Load()
	return r == nil || i.stopping.Load() || time.Since(r.manager.Status().At) < liveLimit
}

// Tasks is the state of this instance's tasks; nil before they can run.
func (i *Instance) Tasks() *tasks.Status {
	if r := i.parts.Load(); r != nil {
		return r.manager.Status()
	}
	return nil
}

// View gives a task's committed state to a reader, see tasks.Manager.View. Before the instance runs tasks no task is here.
func (i *Instance) View(t assign.TaskID, stale bool) (tasks.View, error) {
	if r := i.parts.Load(); r != nil {
		return r.manager.View(t, stale)
	}
	return tasks.View{}, fmt.Errorf("task %s: %w: the instance is still starting", t, tasks.ErrMoving)
}

// Partitions is the number of a subtopology's tasks; 0 as long as it is not known.
func (i *Instance) Partitions(subtopology int32) int32 {
	if r := i.parts.Load(); r != nil {
		return r.manager.Partitions(subtopology)
	}
	return 0
}

// Totals count since the start.
func (i *Instance) Totals() tasks.Totals {
	if r := i.parts.Load(); r != nil {
		return r.manager.Totals()
	}
	return tasks.Totals{}
}
