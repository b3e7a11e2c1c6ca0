package tasks

import (
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Events are called on transitions, never per record. A function that is not set is skipped. They are
// called from several goroutines and must return quickly.
type Events struct {
	PhaseChanged func(PhaseInfo)
	Restored     func(RestoreInfo)
	Released     func(ReleaseInfo)
	TakenOver    func(TakeoverInfo)
	TaskFailed   func(FailureInfo)
	Committed    func(CommitInfo)
}

// PhaseInfo says that the instance does something else with a task from now on.
type PhaseInfo struct {
	Task     assign.TaskID
	From, To handover.Phase
	Member   string
	// Generation of the lease under which it happened.
	Generation int32
	// Release is what the task is taken by, or given up by; zero: it is not on the move.
	Release assign.ReleaseID
}

// RestoreInfo says that an active task's state is up to date.
type RestoreInfo struct {
	Task    assign.TaskID
	Records int64         // changelog records replayed since the state was opened here
	Took    time.Duration // from the opening of the state, or from the order to run what was a learner or standby
	Local   bool          // some of the state was on disk, or was kept warm by a learner or standby
}

// ReleaseInfo says that a release was acknowledged.
type ReleaseInfo struct {
	Task    assign.TaskID
	Release assign.ReleaseID
	Lease   handover.Lease // under which it was committed
	Sent    time.Time      // when the lease was looked at; zero: as part of a transaction, of which Committed tells
	Took    time.Duration  // from the order to the acknowledgement
}

// TakeoverInfo says that a task has processed its first records after it was taken from another instance.
type TakeoverInfo struct {
	Task    assign.TaskID
	Release assign.ReleaseID
	// Gap is the time from the last record processed by the former owner to the first one here, by the
	// two hosts' clocks. It includes any time without input.
	Gap time.Duration
	// Slowest is the longest time from a record's timestamp to its processing, among those that had
	// gathered during the move.
	Slowest time.Duration
	Records int // that had gathered
}

// FailureInfo says that a task could not go on.
type FailureInfo struct {
	Task     assign.TaskID
	Err      error
	Failures int           // in a row
	Retry    time.Duration // until the next attempt
}

// CommitInfo says how a commit ended. Under exactly once it includes the releases of its transaction.
type CommitInfo struct {
	Tasks   []assign.TaskID
	Lease   handover.Lease // under which it was made
	Sent    time.Time      // when the lease was looked at
	Took    time.Duration
	Outcome handover.Outcome
	Err     error
}

// Join returns events that call those of a, then those of b.
func Join(a, b Events) Events {
	a.ensureDefaults()
	b.ensureDefaults()
	return Events{
		PhaseChanged: both(a.PhaseChanged, b.PhaseChanged),
		Restored:     both(a.Restored, b.Restored),
		Released:     both(a.Released, b.Released),
		TakenOver:    both(a.TakenOver, b.TakenOver),
		TaskFailed:   both(a.TaskFailed, b.TaskFailed),
		Committed:    both(a.Committed, b.Committed),
	}
}

func both[T any](a, b func(T)) func(T) {
	return func(v T) { a(v); b(v) }
}

func (e *Events) ensureDefaults() {
	if e.PhaseChanged == nil {
		e.PhaseChanged = func(PhaseInfo) {}
	}
	if e.Restored == nil {
		e.Restored = func(RestoreInfo) {}
	}
	if e.Released == nil {
		e.Released = func(ReleaseInfo) {}
	}
	if e.TakenOver == nil {
		e.TakenOver = func(TakeoverInfo) {}
	}
	if e.TaskFailed == nil {
		e.TaskFailed = func(FailureInfo) {}
	}
	if e.Committed == nil {
		e.Committed = func(CommitInfo) {}
	}
}
