package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// beginLooking fetches the committed offset of a task that is to be released again, or that is not open.
func (m *Manager) beginLooking(s *slot) {
	epoch := s.epoch
	m.opener.want(lookup{task: s.id, epoch: epoch, sub: s.sub, found: func(c committed) {
		m.box.post(func() {
			if s.epoch != epoch || s.closing {
				return
			}
			s.opening = c
			m.machine.Looked(s.id, epoch, c.meta)
			m.reconcile(s)
		})
	}})
}

// beginRelease stops the task, or sends again what it stopped with. A task that never ran here is
// released as it is committed.
func (m *Manager) beginRelease(s *slot) {
	switch s.mode {
	case running:
		m.stopTask(s)
	case stopping:
		// Its end sends the release.
	case halted:
		m.releaseHalted(s)
	default:
		m.releaseUnopened(s)
	}
}

// stopTask ends the processing of a task and flushes what it wrote.
func (m *Manager) stopTask(s *slot) {
	t := s.task
	s.mode = stopping
	m.env.input.remove(t, s.sub.sources(s.id))
	if m.txn != nil {
		t.box.post(t.standStill)
		m.txn.again = true // its release is part of the transaction
		return
	}
	t.box.post(func() {
		t.stop(func(r *release, err error) {
			m.box.post(func() { m.taskStopped(s, t, r, err) })
		})
	})
}

func (m *Manager) taskStopped(s *slot, t *task, r *release, err error) {
	if s.task != t || s.closing {
		return
	}
	if err != nil {
		m.failed(t, fmt.Errorf("flushing task %s: %w", s.id, err))
		return
	}
	s.mode, s.release = halted, r
	m.releaseHalted(s)
}

// releaseHalted sends the release of a task that has stopped, if the machine orders one. What the task has done in
// a transaction that has not ended is released with that.
func (m *Manager) releaseHalted(s *slot) {
	st := m.machine.Task(s.id)
	done := m.txn == nil || s.committed
	if s.mode == halted && !s.closing && done && st.Phase == handover.Releasing {
		s.begun, s.epoch, s.phase = true, st.Epoch, st.Phase
		m.sendRelease(s)
	}
}

// releaseUnopened releases a task whose state is not open here: what is committed, with the changelogs'
// ends, which nobody else may write to under this lease.
func (m *Manager) releaseUnopened(s *slot) {
	epoch, c := s.epoch, s.opening
	lease, leased := m.machine.Lease()
	if !leased {
		return
	}
	m.async(func(ctx context.Context) {
		ends, outcome, err := m.prepareOpening(ctx, s, lease, &c)
		m.box.post(func() {
			if s.epoch != epoch || s.closing || m.machine.Task(s.id).Phase != handover.Releasing {
				return
			}
			switch {
			case outcome == handover.Unknown:
				m.log.Info("the first offsets of a task to be released got no answer; the next round settles it", "task", s.id.String(), "error", err)
				m.machine.ReleaseDone(s.id, epoch, outcome)
				m.reconcile(s)
				return
			case err != nil:
				m.tryLater(s, "cannot release the task yet; trying again", err) // no round would change anything
				return
			}
			s.release = &release{offsets: c.offsets, positions: ends}
			m.sendRelease(s)
		})
	})
}

// sendRelease commits the task's offsets with the token of the order.
func (m *Manager) sendRelease(s *slot) {
	lease, ok := m.machine.ReleaseSent(s.id, s.epoch)
	if !ok {
		return
	}
	order, epoch, ordered := m.machine.Task(s.id).Release, s.epoch, s.ordered
	offsets := offsetsOf(s.sub.sources(s.id), s.release.offsets, handover.Metadata{Committer: lease.Member, Token: tokenOf(order, s.sub, s.release)})
	sent := time.Now()
	m.async(func(ctx context.Context) {
		outcome, err := m.cfg.Offsets.Commit(ctx, lease, offsets)
		refused := (*RefusedError)(nil)
		if errors.As(err, &refused) {
			outcome = handover.Declined // the token counts only when all partitions have it
		}
		m.box.post(func() {
			if outcome == handover.Acknowledged {
				m.totals.releases.Add(1)
				m.cfg.Events.Released(ReleaseInfo{Task: s.id, Release: order, Lease: lease, Sent: sent, Took: time.Since(ordered)})
			} else {
				m.log.Info("a release was not acknowledged; the next round settles it", "task", s.id.String(), "generation", lease.Generation, "error", err)
			}
			if refused != nil {
				m.releaseRefused(s, epoch, refused)
				return
			}
			m.machine.ReleaseDone(s.id, epoch, outcome)
			m.reconcile(s)
		})
	})
}

// releaseRefused handles a release that is refused for a reason of the task's own, such as a topic that is gone. The next
// round, which releases it again, waits: it would most likely be refused as well, and each disturbs the whole group.
func (m *Manager) releaseRefused(s *slot, epoch uint64, refused *RefusedError) {
	m.blame(s, fmt.Errorf("releasing task %s: %w", s.id, refused.of(s.sub.sources(s.id))))
	wait := time.Until(s.retryAt)
	m.async(func(ctx context.Context) {
		select {
		case <-time.After(wait):
			m.box.post(func() {
				m.machine.ReleaseDone(s.id, epoch, handover.Declined)
				m.reconcile(s)
			})
		case <-ctx.Done():
		}
	})
}

// tokenOf is what a release leaves in the committed offset.
func tokenOf(order assign.ReleaseID, sub *Subtopology, r *release) *handover.Token {
	tok := &handover.Token{Release: order, Positions: r.positions, Stores: sub.storesID()}
	if !r.last.IsZero() {
		tok.LastProcessedUs = r.last.UnixMicro()
	}
	return tok
}

// standStill ends the processing on the task's goroutine.
func (t *task) standStill() {
	a := t.active
	if a == nil {
		return
	}
	a.stopped = true
	a.batch.records, a.picking = nil, nil
	t.inbox.drop()
	if k := a.takeover; k != nil && k.begun {
		t.endTakeover(a)
	}
}

// stop ends the processing on the task's goroutine. done gets what a release has to say once everything
// that the task wrote is flushed.
func (t *task) stop(done func(*release, error)) {
	a := t.active
	if a == nil || a.stopped {
		return
	}
	t.standStill()
	a.onFlushed = func() {
		for _, f := range a.frozen {
			if !f.flushed {
				return
			}
		}
		a.onFlushed = nil
		for _, f := range a.frozen {
			if err := f.flush.err(); err != nil {
				done(nil, err)
				return
			}
		}
		done(&release{offsets: append([]int64(nil), a.offsets...), positions: t.positions(a, len(a.frozen)), last: a.lastProcessed}, nil)
	}
	t.freeze(a, func(*frozen) {})
}
