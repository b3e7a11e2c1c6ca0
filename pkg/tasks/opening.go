package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// beginOpening looks for the offsets that a task starts at: those with the token when it is taken, else
// the committed ones.
func (m *Manager) beginOpening(s *slot, st handover.TaskState) {
	settling := m.txn != nil && m.txn.phase == txnClosed // what this instance's last transaction came to is not settled yet
	if st.Phase == handover.Opening && (settling || !m.machine.MayOpen(s.id)) {
		s.begun = false // check comes back to it
		return
	}
	t := s.task
	var ahead func(committed)
	if st.Phase == handover.Taking {
		s.taking = st.Release
		ahead = func(c committed) { m.box.post(func() { m.readAhead(s, t, st, c.offsets) }) }
	}
	m.opener.want(lookup{
		task: s.id, epoch: st.Epoch, sub: s.sub, token: st.Phase == handover.Taking, release: st.Release, ahead: ahead,
		found: func(c committed) {
			m.box.post(func() {
				if st.Phase == handover.Taking {
					m.tokenFound(s, t, st, c)
				} else {
					m.offsetsFound(s, t, st, c)
				}
			})
		},
	})
}

// tokenFound starts a task that its former owner has released.
func (m *Manager) tokenFound(s *slot, t *task, st handover.TaskState, c committed) {
	tok := c.meta.Token
	if s.task != t || s.closing || !m.machine.TokenSeen(s.id, st.Epoch, tok) {
		return
	}
	m.notePhase(s, handover.Opening)
	s.phase = handover.Opening
	if !s.sub.keeps(tok) {
		// The former owner runs another version of the file, with other stores. It has released the task, so all that it has
		// written is in the changelogs: their ends are asked for, as for a task that nobody released.
		m.log.Info("the task was released by an instance with other stores; its state is read to the changelogs' ends", "task", s.id.String())
		m.beginOpening(s, m.machine.Task(s.id))
		return
	}
	m.restore(s, t, st.Epoch, c, tok.Positions, newTakeover(s, tok))
}

// newTakeover begins to measure the start of a task that was released with the token.
func newTakeover(s *slot, tok *handover.Token) *takeover {
	k := &takeover{info: TakeoverInfo{Task: s.id, Release: tok.Release}}
	if tok.LastProcessedUs > 0 {
		k.released = time.UnixMicro(tok.LastProcessedUs)
	}
	return k
}

// offsetsFound starts a task that nobody holds: its state must reach the changelogs' ends, asked for now
// that the committed offset is known.
func (m *Manager) offsetsFound(s *slot, t *task, st handover.TaskState, c committed) {
	lease, leased := m.machine.Lease()
	if s.task != t || s.closing || !leased || m.machine.Task(s.id).Epoch != st.Epoch {
		return
	}
	m.machine.CommitSent([]assign.TaskID{s.id})
	m.async(func(ctx context.Context) {
		ends, outcome, err := m.prepareOpening(ctx, s, lease, &c)
		m.box.post(func() {
			// Without an answer the request may still arrive, and would set the offset back: the task is
			// not opened under this lease any more.
			m.machine.CommitDone([]assign.TaskID{s.id}, lease, outcome)
			if s.task != t || s.closing || m.machine.Task(s.id).Epoch != st.Epoch {
				return
			}
			if err != nil {
				m.tryLater(s, "cannot open the task yet; trying again", err)
				return
			}
			var k *takeover
			if tok := c.meta.Token; tok != nil && tok.Release.Owner != lease.Member && (tok.Release == s.taking || t.ahead) {
				// The former owner released the task and has left the group before this one saw the token, or the plan
				// that told of it.
				k = newTakeover(s, tok)
			}
			m.restore(s, t, st.Epoch, c, ends, k)
		})
	})
}

// openRetryMost bounds the pause between two attempts to open a task, or to release one that is not open: what is
// in the way mostly ends by itself.
const openRetryMost = 2 * time.Second

// tryLater tells why what has begun for a task cannot be done, and begins it anew after a while.
func (m *Manager) tryLater(s *slot, what string, err error) {
	s.notOpen = failure{err: err, failures: s.notOpen.failures + 1}
	wait := min(backoff(s.notOpen.failures), openRetryMost)
	s.begun, s.retryAt = false, time.Now().Add(wait)
	if m.ctx.Err() == nil {
		level := slog.LevelWarn
		if s.notOpen.failures == 1 {
			level = slog.LevelInfo // mostly a round that is under way
		}
		m.log.Log(m.ctx, level, what, "task", s.id.String(), "failures", s.notOpen.failures, "retry", wait.String(), "error", err)
	}
}

// prepareOpening settles where a task without committed offsets starts, and asks for the changelogs' ends.
// The outcome is that of the commit which the former may need; Acknowledged if it needs none.
func (m *Manager) prepareOpening(ctx context.Context, s *slot, lease handover.Lease, c *committed) (ends []int64, o handover.Outcome, err error) {
	missing, err := resolveStarts(ctx, m.cfg.Logs, s.sub, s.id, c.offsets)
	if err != nil {
		return nil, handover.Declined, err
	}
	if missing {
		// Committed before the first record, so that a successor does not decide otherwise.
		meta := handover.Metadata{Committer: lease.Member, After: c.meta.LastRelease()}
		if o, err = m.cfg.Offsets.Commit(ctx, lease, offsetsOf(s.sub.sources(s.id), c.offsets, meta)); err != nil {
			return nil, o, fmt.Errorf("committing the first offsets: %w", err)
		}
		c.meta = meta
	}
	logs := s.sub.changelogs(s.id)
	if m.cfg.Transactions != nil {
		if err := m.cfg.Transactions.Fence(ctx); err != nil {
			return nil, o, fmt.Errorf("ending what a former owner has left open: %w", err)
		}
	}
	if len(logs) == 0 {
		return nil, o, nil
	}
	got, err := m.cfg.Logs.Ends(ctx, logs)
	if err != nil {
		return nil, o, fmt.Errorf("asking for the changelogs' ends: %w", err)
	}
	for _, tp := range logs {
		end, ok := got[tp]
		if !ok {
			return nil, o, fmt.Errorf("no answer for the end of changelog %s partition %d", tp.Topic, tp.Partition)
		}
		ends = append(ends, end)
	}
	return ends, o, nil
}

// restore brings the task's state to the targets, makes it active in place and lets its input in.
func (m *Manager) restore(s *slot, t *task, epoch uint64, c committed, targets []int64, k *takeover) {
	t.box.post(func() {
		t.restoreTo(targets, func() {
			if err := t.activate(epoch, append([]int64(nil), c.offsets...), k); err != nil {
				m.env.failed(t, err)
				return
			}
			m.box.post(func() { m.activated(s, t, epoch, c) })
		})
	})
}

func (m *Manager) activated(s *slot, t *task, epoch uint64, c committed) {
	if s.task != t || s.closing {
		return
	}
	s.mode = restored
	if m.stopping {
		return // nothing new begins
	}
	if !m.machine.Opened(s.id, epoch, c.meta) {
		// The order has changed meanwhile. A release that has begun commits what is committed and needs no task;
		// what else has begun counts on a task that replays.
		if !m.machine.Task(s.id).Phase.InRelease() {
			s.begun = false
			m.reconcile(s)
		}
		return
	}
	s.mode, s.phase, s.opening, s.well = running, handover.Running, c, time.Now()
	s.notOpen = failure{}
	m.notePhase(s, handover.Running)
	p := m.env.producer // not that of the time when the task was opened: a learner outlives a lease
	t.box.post(func() { t.admit(epoch, p) })
	m.askEnds(s, t, epoch)
	m.letWrite(s)
	if s.ahead {
		s.ahead = false // it is running: what ends that ends the reading
		return
	}
	m.env.input.add(t, epoch, s.sub.sources(s.id), c.offsets)
}

// offsetsOf are the offsets of a task's partitions with their metadata.
func offsetsOf(parts []TopicPartition, offsets []int64, meta handover.Metadata) []Offset {
	text := meta.String()
	out := make([]Offset, len(parts))
	for i, tp := range parts {
		out[i] = Offset{TopicPartition: tp, Offset: offsets[i], Metadata: text}
	}
	return out
}
