package group

import "time"

// Expired says whether the group may have removed this member by now, by our own clock: others may run its
// tasks, and nothing of the present lease may be written any more. Lost follows within a quarter of a
// heartbeat; a process that was paused learns it here at once. It stays true until Lost has returned, and is false
// without a lease.
func (m *Membership) Expired(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.losing || m.mu.clock.over(now)
}

// Losses counts the leases that were lost. What was made under a lease must not be written once another one is
// counted, though there is none now that could expire, or a new one.
func (m *Membership) Losses() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.losses
}
