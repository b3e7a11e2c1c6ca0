package handover

import "github.com/streamworker/streamworker/pkg/group/assign"

// Assign takes the tasks whose partitions a protocol of plain consumers has assigned, and with them a new lease. It is
// all that this instance is to run, and no step on the way to something else: no round is asked for.
func (m *Machine) Assign(lease Lease, tasks []assign.TaskID) {
	want := m.wantRound
	m.Adopt(lease, assign.MemberPlan{Own: tasks})
	m.wantRound = want
}

// Revoke gives owned tasks up with nobody named to take them: what runs is stopped and committed as for a release, what is
// only being opened is dropped. Whoever is assigned them next opens them from what is committed.
func (m *Machine) Revoke(which func(assign.TaskID) bool) {
	// Its own id: no leader gives this one out for a task that it has told this member to own.
	id := assign.ReleaseID{Generation: m.lease.Generation, Owner: m.lease.Member}
	for t, s := range m.tasks {
		switch {
		case !s.Phase.Owns() || !which(t):
		case s.Phase == Running:
			m.adoptRelease(s, id)
		default:
			s.enter(Idle)
		}
	}
}

// Releasing says whether a release is under way that may still be committed.
func (m *Machine) Releasing() bool {
	for _, s := range m.tasks {
		if s.Phase == Looking || s.Phase == Releasing {
			return true
		}
	}
	return false
}
