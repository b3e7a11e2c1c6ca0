package tasks

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

var (
	// ErrNotHere is returned by View when the instance neither runs the task nor has a copy of it.
	ErrNotHere = errors.New("the task is not on this instance")
	// ErrMoving is returned by View when the task is on this instance, but cannot be read at the moment: it is being opened, or
	// handed over, or the instance has lost its group. A moment later it is readable, here or elsewhere.
	ErrMoving = errors.New("the task is being moved or opened")
)

// Role is what an instance has of a task.
type Role string

// The roles. Learners and standbys follow the changelogs, and may be behind.
const (
	Active  Role = "active"
	Learner Role = "learner"
	Standby Role = "standby"
)

// View is a task's state for reading. It stays valid until the task is closed; its stores then return state.ErrClosed.
type View struct {
	Role Role
	Lag  int64 // of a copy: changelog records behind; -1: not known yet
	db   *state.DB
}

// NewView is a view of the database of one task.
func NewView(role Role, lag int64, db *state.DB) View { return View{Role: role, Lag: lag, db: db} }

// Applied reads a key of a store, as state.Store.Applied does.
func (v View) Applied(store string, key []byte) ([]byte, bool, error) {
	s := v.db.Store(store)
	if s == nil {
		return nil, false, fmt.Errorf("the task has no store %s", store)
	}
	return s.Applied(key)
}

// AppliedRange reads a range of a store, as state.Store.AppliedRange does.
func (v View) AppliedRange(store string, from, to []byte) (*state.Iterator, error) {
	s := v.db.Store(store)
	if s == nil {
		return nil, fmt.Errorf("the task has no store %s", store)
	}
	return s.AppliedRange(from, to), nil
}

// View gives a task's committed state to a reader. It looks at the latest status only, so it costs processing nothing.
//
// An active task is shown from when it runs here until it is told to release, under a lease that has not expired. Whoever
// takes it begins with all that was committed here, so a reader who follows it never sees it go back. A copy is shown when
// stale is true; so is then a task that is being handed over.
func (m *Manager) View(t assign.TaskID, stale bool) (View, error) {
	st := m.status.Load()
	i, found := slices.BinarySearchFunc(st.Tasks, t, func(ts TaskStatus, t assign.TaskID) int { return ts.Task.Compare(t) })
	if !found {
		return View{}, fmt.Errorf("task %s: %w", t, ErrNotHere)
	}
	ts := &st.Tasks[i]
	v := View{Lag: ts.Lag, db: ts.db}
	switch {
	case ts.Phase == handover.Running && ts.running && !m.cfg.Group.Expired(time.Now()):
		v.Role, v.Lag = Active, 0
	case ts.Phase == handover.Standby:
		v.Role = Standby
	default:
		v.Role = Learner
	}
	switch {
	case v.Role != Active && !stale && (ts.Phase.Copies() || ts.Phase == handover.Taking):
		return View{}, fmt.Errorf("task %s: %w", t, ErrNotHere)
	case v.db == nil, v.Role != Active && !stale:
		return View{}, fmt.Errorf("task %s: %w", t, ErrMoving)
	}
	return v, nil
}

// Partitions is the number of a subtopology's tasks; 0 if there is no such subtopology.
func (m *Manager) Partitions(subtopology int32) int32 {
	if subtopology < 0 || int(subtopology) >= len(m.cfg.Subtopologies) {
		return 0
	}
	return m.cfg.Subtopologies[subtopology].Partitions
}

// PartitionOf is where Partitioner, and so Kafka's default partitioner, sends records with this key.
func PartitionOf(key []byte, partitions int32) int32 {
	return int32(kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: key}, int(partitions)))
}
