package tasks

import (
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Status is what an instance shows of itself. It is a snapshot, at most a check interval old.
type Status struct {
	At         time.Time // when it was taken; while the manager's loop goes round, less than a check interval ago
	Member     string    // member id; empty before the first plan
	Generation int32
	Leased     bool // there is a lease: a plan has come and the group was not lost since
	Leaving    bool
	DeadlineMs int64
	Drained    bool // leaving, and nothing is left to give away
	Superseded bool // a later incarnation of this instance is in the group
	Stopping   bool
	Held       int // tasks owned, being released or being taken
	Tasks      []TaskStatus
	Stuck      []handover.StuckCopy
	Globals    []GlobalFault   // global tables with records that cannot be read
	Unknown    []assign.TaskID // that the plan tells to run, and this instance's topology does not have
}

// TaskStatus is one task in a Status.
type TaskStatus struct {
	Task    assign.TaskID
	Phase   handover.Phase
	Ready   bool  // of a learner
	Lag     int64 // records behind: of the input for an active task, of the changelogs for a copy; -1: not known yet
	Records int64 // input records processed since it was opened here
	Err     error // what keeps it from going on
	// Failures in a row.
	Failures int

	running bool      // it processes
	db      *state.DB // nil: it is not open
}

// Totals count since the start of the instance.
type Totals struct {
	RecordsIn, RecordsOut                      int64
	Changes                                    int64 // changelog records written
	Restored                                   int64 // changelog records replayed
	Skipped, DeadLettered                      int64
	Dropped                                    int64 // had no key or value for an aggregate, as Kafka Streams drops them
	Late                                       int64 // came too late for their windows
	Commits, CommitsRefused, CommitsUnanswered int64
	Aborts                                     int64 // transactions
	Takeovers, Releases, Failures              int64
	Busy                                       time.Duration // in which tasks computed, summed over the threads
}

// Status is the latest snapshot.
func (m *Manager) Status() *Status { return m.status.Load() }

// Totals are the present counts.
func (m *Manager) Totals() Totals {
	t := &m.totals
	return Totals{
		RecordsIn: t.recordsIn.Load(), RecordsOut: t.recordsOut.Load(), Changes: t.changes.Load(), Restored: t.restored.Load(),
		Skipped: t.skipped.Load(), DeadLettered: t.deadLettered.Load(), Dropped: t.dropped.Load(), Late: t.late.Load(),
		Commits: t.commits.Load(), CommitsRefused: t.commitsRefused.Load(), CommitsUnanswered: t.commitsUnanswered.Load(), Aborts: t.aborts.Load(),
		Takeovers: t.takeovers.Load(), Releases: t.releases.Load(), Failures: t.failures.Load(),
		Busy: time.Duration(t.busy.Load()),
	}
}

func (m *Manager) publish() {
	lease, leased := m.machine.Lease()
	st := &Status{
		At: time.Now(), Member: lease.Member, Generation: lease.Generation, Leased: leased, Leaving: m.machine.Leaving(), DeadlineMs: m.machine.DeadlineMs(),
		Drained: m.machine.Drained(), Superseded: m.machine.Superseded(), Stopping: m.stopping, Held: m.machine.Held(), Stuck: m.stuckNow, Unknown: m.unknown,
	}
	for _, t := range sortedTasks(m.slots) {
		s := m.slots[t]
		ms := m.machine.Task(t)
		if ms.Phase == handover.Idle || ms.Phase == handover.Released {
			continue
		}
		ts := TaskStatus{Task: t, Phase: ms.Phase, Ready: ms.Ready, Lag: -1, Err: s.err, Failures: s.failures}
		if m.txn != nil && m.txn.broken != nil && ms.Phase == handover.Opening {
			ts.Err, ts.Failures = m.txn.broken, m.txn.failures
		}
		if s.notOpen.err != nil {
			ts.Err, ts.Failures = s.notOpen.err, s.notOpen.failures
		}
		if s.input.err != nil {
			ts.Err, ts.Failures = s.input.err, s.input.failures
		}
		if s.task != nil {
			ts.Records = s.task.stats.records.Load()
			ts.running, ts.db = s.mode == running, s.task.opened.Load()
			if s.mode == running {
				ts.Lag = s.task.stats.inputLag.Load()
			} else {
				ts.Lag = s.task.stats.copyLag.Load()
			}
			if f := s.task.stats.stalled.Load(); f != nil {
				ts.Err, ts.Failures = f.err, f.failures
			}
		}
		st.Tasks = append(st.Tasks, ts)
	}
	st.Globals = m.env.globals.faulty()
	m.status.Store(st)
}
