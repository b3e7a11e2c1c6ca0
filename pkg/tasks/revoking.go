package tasks

import (
	"sync"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Assigned takes the tasks that a protocol of plain consumers has assigned to this member for a generation: all that it
// is to run, in place of a plan.
func (m *Manager) Assigned(memberID string, generation int32, tasks []assign.TaskID) {
	m.call(func() {
		m.unknown = nil
		m.machine.Assign(handover.Lease{Member: memberID, Generation: generation}, tasks)
		m.log.Debug("adopted an assignment", "member", memberID, "generation", generation, "own", len(tasks))
		m.planned()
	})
}

// Revoke has owned tasks stop, for which which says so, and commit what they have done. It returns at once; done is called when
// neither that nor a release that was ordered before is under way any more: whatever is committed from then on, it is not
// by these tasks under the present lease. done must return at once.
//
// An instance that stops does as much by itself; done is then called when its tasks are closed.
func (m *Manager) Revoke(which func(assign.TaskID) bool, done func()) {
	done = sync.OnceFunc(done)
	running := m.call(func() {
		m.revoked = append(m.revoked, done)
		if m.stopping {
			return
		}
		m.machine.Revoke(which)
		m.reconcileAll()
		m.publish()
	})
	if !running {
		done()
	}
}

// tellRevoked tells those who wait for releases to end.
func (m *Manager) tellRevoked() {
	if len(m.revoked) == 0 || m.machine.Releasing() && !m.stopping {
		return
	}
	for _, done := range m.revoked {
		done()
	}
	m.revoked = nil
}
