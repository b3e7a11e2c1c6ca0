package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// commit makes what was done since the last time permanent.
func (m *Manager) commit() {
	if m.txn != nil {
		m.cutTransaction()
	} else {
		m.beginCommits()
	}
}

// beginCommits asks every running task to cut off what it has done. Each comes back when the broker has
// its output and changes; tasks go on processing meanwhile.
func (m *Manager) beginCommits() {
	for _, s := range m.slots {
		if s.mode != running || s.closing || s.freezing || !m.machine.MayCommit(s.id) {
			continue
		}
		s.freezing = true
		s := s
		t := s.task
		t.box.post(func() {
			if !t.freezeIfMoved(func(f *frozen) { m.box.post(func() { m.flushed(s, t, f) }) }) {
				m.box.post(func() { m.nothingToCommit(s, t) })
			}
		})
	}
}

// freezeIfMoved freezes a task that has done something since the last time. False: it has not, or it was
// stopped, and the freeze of the stop covers all.
func (t *task) freezeIfMoved(done func(*frozen)) bool {
	a := t.active
	if a == nil || a.stopped || !a.moved {
		return false
	}
	t.freeze(a, done)
	return true
}

func (m *Manager) nothingToCommit(s *slot, t *task) {
	if s.task == t {
		s.freezing = false
	}
}

func (m *Manager) flushed(s *slot, t *task, f *frozen) {
	if s.task != t || s.closing || s.mode != running {
		return // a release covers it, or it is dropped
	}
	if err := f.flush.err(); err != nil {
		m.failed(t, err)
		return
	}
	s.commit = f
	m.commitReady()
}

// commitRetry is how long a commit that was refused waits before it is sent again under the same lease.
const commitRetry = 200 * time.Millisecond

// refused says whether the task's commit was refused under this lease a moment ago. Mostly a newer lease
// comes soon; but the coordinator may also have been out of reach for a while.
func (s *slot) refused(lease handover.Lease) bool {
	return s.refusedUnder == lease && time.Now().Before(s.commitAfter)
}

// commitReady sends one request for all tasks that have flushed, unless one is on its way. What was refused
// is sent again under the lease of then, if that still owns the task; a plan that takes it away drops it.
func (m *Manager) commitReady() {
	lease, leased := m.machine.Lease()
	if m.committing || !leased || m.stopping || m.txn != nil {
		return
	}
	var sent []*slot
	var tasks []assign.TaskID
	var frozens []*frozen
	var offsets []Offset
	for _, t := range sortedTasks(m.slots) {
		s := m.slots[t]
		if s.commit == nil || s.mode != running || s.closing || s.refused(lease) || !m.machine.MayCommit(t) {
			continue
		}
		sent, tasks, frozens = append(sent, s), append(tasks, t), append(frozens, s.commit)
		offsets = append(offsets, offsetsOf(s.sub.sources(t), s.commit.offsets, m.machine.Metadata(t))...)
	}
	if len(sent) == 0 {
		return
	}
	m.committing = true
	m.machine.CommitSent(tasks)
	begin := time.Now()
	m.async(func(ctx context.Context) {
		outcome, err := m.cfg.Offsets.Commit(ctx, lease, offsets)
		m.cfg.Events.Committed(CommitInfo{Tasks: tasks, Lease: lease, Sent: begin, Took: time.Since(begin), Outcome: outcome, Err: err})
		m.box.post(func() { m.committed(sent, frozens, lease, outcome, err) })
	})
}

func (m *Manager) committed(sent []*slot, frozens []*frozen, lease handover.Lease, outcome handover.Outcome, err error) {
	m.committing = false
	switch outcome {
	case handover.Acknowledged:
		m.totals.commits.Add(1)
	case handover.Declined:
		m.totals.commitsRefused.Add(1)
	case handover.Unknown:
		m.totals.commitsUnanswered.Add(1)
	}
	var refused *RefusedError
	_ = errors.As(err, &refused)
	for i, s := range sent {
		o := outcome
		var why error
		if refused != nil {
			if why = refused.of(s.sub.sources(s.id)); why != nil {
				o = handover.Declined
			}
		}
		m.machine.CommitDone([]assign.TaskID{s.id}, lease, o)
		switch {
		case s.commit != frozens[i]: // closed meanwhile
		case o == handover.Acknowledged:
			s.commit, s.freezing = nil, false
			s.failures, s.err, s.well = 0, nil, time.Now()
			s.processed = frozens[i].offsets
			m.apply(s, frozens[i])
		default:
			m.commitRefused(s, lease, why)
		}
	}
	m.commitReady()
}

// commitRefused puts the next attempt under the same lease off. An error is one of the task's own, which a later
// lease does not help with.
func (m *Manager) commitRefused(s *slot, lease handover.Lease, why error) {
	wait := commitRetry
	if why != nil {
		s.failures++
		s.err, s.well = why, time.Time{}
		wait = backoff(s.failures)
		m.totals.failures.Add(1)
		m.cfg.Events.TaskFailed(FailureInfo{Task: s.id, Err: why, Failures: s.failures, Retry: wait})
	}
	s.refusedUnder, s.commitAfter = lease, time.Now().Add(wait)
}

// apply writes what was committed to the task's store.
func (m *Manager) apply(s *slot, f *frozen) {
	t := s.task
	t.box.post(func() {
		t.careful = false
		if err := t.applyUntil(f); err != nil {
			m.env.failed(t, err)
		}
	})
}
