package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// shutdown ends every task: processing stops, what was done is flushed and committed, stores are closed.
// Plans no longer change anything. What the broker does not answer in time is dropped, to be replayed.
func (m *Manager) shutdown() {
	m.stopping = true
	m.publish()
	deadline := time.Now().Add(m.patience)
	for _, s := range m.slots {
		if s.mode == running && !s.closing {
			m.stopTask(s)
		}
	}
	m.box.signal() // a transaction may have to be cut
	m.pump(deadline, func() bool {
		for _, s := range m.slots {
			if s.mode == stopping && !s.closing {
				return false
			}
		}
		return !m.committing && (m.txn == nil || m.txn.phase == txnOpen || m.txn.phase == txnClosed)
	})
	clean := map[assign.TaskID]bool{}
	for m.txn == nil && m.lastCommit(deadline, clean) && time.Now().Before(deadline) {
		// Refused: a round has ended meanwhile, or is about to.
		m.pump(earlier(deadline, time.Now().Add(commitRetry)), func() bool { return m.adopted })
	}
	// A release that is on its way decides whether others wait for this instance's session to end.
	m.pump(deadline, func() bool {
		for _, s := range m.slots {
			if s.mode == halted && !s.closing && m.machine.Task(s.id).Phase == handover.Releasing {
				return false
			}
		}
		return true
	})
	for _, t := range sortedTasks(m.slots) {
		s := m.slots[t]
		if s.task != nil && !s.closing {
			released := m.machine.Task(t).Phase == handover.Released
			m.closeTask(s, clean[t] || s.committed || released || s.mode == replaying || s.mode == restored)
		}
	}
	// Without a bound: stores must be closed before the state directory is given up.
	m.pump(time.Time{}, func() bool {
		for _, s := range m.slots {
			if s.task != nil {
				return false
			}
		}
		return true
	})
	m.publish()
}

// dropUnflushed closes the tasks whose last records are still on their way when the group is lost.
func (m *Manager) dropUnflushed() {
	for _, t := range sortedTasks(m.slots) {
		if s := m.slots[t]; !s.closing && (s.mode == running || s.mode == stopping) {
			m.closeTask(s, false)
		}
	}
}

// pump serves the loop's mailbox until the condition holds, or the deadline, if there is one, has passed.
func (m *Manager) pump(deadline time.Time, until func() bool) {
	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timeout = time.After(time.Until(deadline))
	}
	for !until() {
		select {
		case <-m.box.wake:
			m.serveBox()
		case <-timeout:
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// lastCommit commits what the stopped tasks have done, in one request, and notes those for which that was
// acknowledged. It says whether the request was refused and may be sent again.
func (m *Manager) lastCommit(deadline time.Time, clean map[assign.TaskID]bool) (refused bool) {
	m.adopted = false
	lease, leased := m.machine.Lease()
	if !leased {
		return false
	}
	var tasks []assign.TaskID
	var offsets []Offset
	for _, t := range sortedTasks(m.slots) {
		if s := m.slots[t]; s.mode == halted && !s.closing && m.machine.MayCommit(t) {
			tasks = append(tasks, t)
			offsets = append(offsets, offsetsOf(s.sub.sources(t), s.release.offsets, m.machine.Metadata(t))...)
		}
	}
	if len(tasks) == 0 {
		return false
	}
	answered := false
	m.machine.CommitSent(tasks)
	sent := time.Now()
	m.async(func(ctx context.Context) {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		outcome, err := m.cfg.Offsets.Commit(ctx, lease, offsets)
		m.cfg.Events.Committed(CommitInfo{Tasks: tasks, Lease: lease, Sent: sent, Took: time.Since(sent), Outcome: outcome, Err: err})
		m.box.post(func() {
			answered = true
			refused = outcome == handover.Declined
			m.machine.CommitDone(tasks, lease, outcome)
			if outcome != handover.Acknowledged {
				m.log.Warn("the last commit was not acknowledged: the records since the one before it will be processed again", "error", err)
				return
			}
			var partly *RefusedError
			_ = errors.As(err, &partly)
			for _, t := range tasks {
				clean[t] = partly == nil || partly.of(m.slots[t].sub.sources(t)) == nil
			}
		})
	})
	m.pump(deadline, func() bool { return answered })
	return refused
}

// planWhileStopping takes a plan that comes while the instance stops: nothing new begins, but what it
// is told to release it can still release.
func (m *Manager) planWhileStopping() {
	m.adopted = true
	for _, t := range sortedTasks(m.slots) {
		if s := m.slots[t]; s.epoch != m.machine.Task(t).Epoch { // else it is on its way
			m.releaseHalted(s)
		}
	}
}
