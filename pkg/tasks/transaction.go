package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Transactions is what exactly once needs beyond the producer itself.
type Transactions interface {
	// CommitOffsets makes the offsets part of the producer's transaction, under the lease. Declined means
	// that the lease was refused, and that the request may be sent again under a newer one. With any outcome
	// the error may be a *RefusedError.
	CommitOffsets(ctx context.Context, producer *kgo.Client, lease handover.Lease, offsets []Offset) (handover.Outcome, error)
	// Fence ends the transactions that instances which are gone have left open, as far as that is possible.
	Fence(ctx context.Context) error
}

// txnPhase is how far the transaction is that all tasks of the instance write in.
type txnPhase uint8

const (
	txnClosed  txnPhase = iota // no producer is ready; tasks hold what they write
	txnOpen                    // tasks write
	txnCutting                 // each task is asked to cut off what it has done
	txnEnding                  // offsets are being added, or the transaction is being ended
	txnRefused                 // the lease was refused the offsets: the next plan decides
)

// transaction is the present transaction under exactly once. The manager's loop owns it.
type transaction struct {
	phase    txnPhase
	number   int           // of the producer: what was begun under an earlier one does not count any more
	epoch    producerEpoch // in which the transaction was begun
	again    bool          // a release waits: cut as soon as the transaction is open
	waiting  int           // tasks that have been asked to cut and have not flushed yet
	cuts     []cut
	starting bool  // the producer's first transaction is being begun
	pending  bool  // the producer is to start once a plan has come: until then its id may be another process's
	broken   error // why the producer does not start
	failures int   // in a row: transactions that were aborted, producers that did not start
}

// cut is what one task contributes to a transaction.
type cut struct {
	s       *slot
	t       *task
	f       *frozen
	release *release         // of a task that was stopped
	order   assign.ReleaseID // the release that the commit's token is for; zero: it has none
}

// cutTransaction begins the end of the transaction, if it is open. Tasks go on processing meanwhile, and hold
// what they write for the next one.
func (m *Manager) cutTransaction() {
	x := m.txn
	if x.phase != txnOpen {
		return
	}
	x.phase, x.again, x.cuts = txnCutting, false, nil
	number := x.number
	for _, t := range sortedTasks(m.slots) {
		s := m.slots[t]
		if s.closing || s.mode != running && s.mode != stopping {
			continue
		}
		x.waiting++
		task := s.task
		task.box.post(func() {
			task.cut(func(f *frozen, r *release) {
				m.box.post(func() { m.cutDone(number, cut{s: s, t: task, f: f, release: r}) })
			})
		})
	}
	if x.waiting == 0 {
		m.openTransaction()
	}
}

// cut cuts off, on the task's goroutine, what it has done. done gets nil if that is nothing.
func (t *task) cut(done func(*frozen, *release)) {
	a := t.active
	if a == nil {
		done(nil, nil)
		return
	}
	defer func() { a.held = true }() // what the freeze writes is a part of this transaction
	if !a.moved && !a.stopped {
		done(nil, nil)
		return
	}
	t.freeze(a, func(f *frozen) {
		var r *release
		if a.stopped {
			r = &release{offsets: f.offsets, positions: t.positions(a, len(a.frozen)), last: a.lastProcessed}
		}
		done(f, r)
	})
}

func (m *Manager) cutDone(number int, c cut) {
	x := m.txn
	if number != x.number {
		return
	}
	x.waiting--
	if c.f != nil && c.s.task == c.t && !c.s.closing {
		if err := c.f.flush.err(); err != nil {
			m.cannotWrite(c, fmt.Errorf("writing in the transaction: %w", err))
			return
		}
		if c.release != nil {
			c.s.release = c.release
			if c.s.mode == stopping {
				c.s.mode = halted
			}
		}
		x.cuts = append(x.cuts, c)
	}
	if x.waiting == 0 {
		m.endTransaction()
	}
}

// cannotWrite aborts the transaction. A task whose records the brokers do not take waits before it is opened
// anew: it would bring the next transaction down as well, and with it the other tasks.
func (m *Manager) cannotWrite(c cut, err error) {
	if isFenced(err) || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, context.Canceled) {
		m.abortTransaction(err)
	} else {
		m.failed(c.t, err)
	}
}

// endTransaction commits what the tasks have cut off, if the lease still covers all of it.
func (m *Manager) endTransaction() {
	x := m.txn
	if len(x.cuts) == 0 {
		m.openTransaction()
		return
	}
	lease, leased := m.machine.Lease()
	if !leased {
		m.abortTransaction(errors.New("the lease is over"))
		return
	}
	var offsets []Offset
	var all, owned []assign.TaskID
	produced := false
	for i := range x.cuts {
		c := &x.cuts[i]
		meta, ok := m.metadataOf(c)
		if !ok {
			m.abortTransaction(fmt.Errorf("the plan has taken task %s away", c.s.id))
			return
		}
		done := c.f.offsets
		offsets = append(offsets, offsetsOf(c.s.sub.sources(c.s.id), done, meta)...)
		produced = produced || c.f.produced
		all = append(all, c.s.id)
		if meta.Token == nil {
			owned = append(owned, c.s.id)
		}
	}
	x.phase = txnEnding
	if produced {
		owned = nil // late requests are fenced by the producer's epoch
	}
	m.machine.CommitSent(owned)
	number, producer, epoch := x.number, m.env.producer, x.epoch
	sent := time.Now()
	m.async(func(ctx context.Context) {
		var outcome handover.Outcome
		var err error
		if produced {
			outcome, epoch, err = m.commitTransaction(ctx, producer, epoch, lease, offsets)
		} else {
			// A transaction in which nothing was produced does not exist for the broker.
			outcome, err = m.cfg.Offsets.Commit(ctx, lease, offsets)
		}
		m.cfg.Events.Committed(CommitInfo{Tasks: all, Lease: lease, Sent: sent, Took: time.Since(sent), Outcome: outcome, Err: err})
		m.box.post(func() {
			// Also for a transaction that was aborted meanwhile: tasks wait for the answer before they are opened.
			m.machine.CommitDone(owned, lease, outcome)
			if number == x.number { // else what the brokers made of it is found when the tasks are opened
				x.epoch = epoch
				m.transactionEnded(lease, outcome, err)
			}
		})
	})
}

// metadataOf is what the commit says of one task; false: it may not be committed any more. A task that is
// to be released is committed with its token.
func (m *Manager) metadataOf(c *cut) (handover.Metadata, bool) {
	c.order = assign.ReleaseID{}
	meta := m.machine.Metadata(c.s.id)
	st := m.machine.Task(c.s.id)
	if st.Phase == handover.Looking {
		// Told again. There is nothing to look for: no release was sent yet, it is in this very transaction or in
		// the next.
		m.opener.forget(c.s.id)
		m.machine.Looked(c.s.id, st.Epoch, meta)
		st = m.machine.Task(c.s.id)
	}
	switch {
	case st.Phase == handover.Running:
		return meta, true
	case st.Phase == handover.Releasing && c.release != nil:
		c.s.epoch, c.s.phase = st.Epoch, st.Phase
		if _, ok := m.machine.ReleaseSent(c.s.id, st.Epoch); !ok {
			return meta, false
		}
		c.order = st.Release
		meta.Token = tokenOf(st.Release, c.s.sub, c.release)
		return meta, true
	case st.Phase == handover.Releasing:
		// Told to release since it was cut: its next cut carries the token.
		m.txn.again = true
		return meta, true
	}
	return meta, false
}

// commitTransaction adds the offsets, ends the transaction and begins the next one, whose epoch it returns.
func (m *Manager) commitTransaction(ctx context.Context, p *kgo.Client, epoch producerEpoch, lease handover.Lease, offsets []Offset) (handover.Outcome, producerEpoch, error) {
	switch now, err := epochOf(ctx, p); {
	case err != nil:
		return handover.Unknown, epoch, fmt.Errorf("the producer has failed: %w", err)
	case now != epoch:
		// The client renews its epoch by itself after some errors and goes on as if nothing had happened, but
		// the brokers have aborted what was written before.
		return handover.Unknown, epoch, errors.New("the producer was renewed within the transaction, part of which is aborted")
	}
	switch outcome, err := m.cfg.Transactions.CommitOffsets(ctx, p, lease, offsets); {
	case outcome != handover.Acknowledged:
		return outcome, epoch, err
	case err != nil:
		return handover.Unknown, epoch, err // for a part of them
	}
	if err := p.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return handover.Unknown, epoch, fmt.Errorf("ending the transaction: %w", err)
	}
	epoch, err := begin(ctx, p)
	if err != nil {
		return handover.Unknown, epoch, fmt.Errorf("beginning a transaction: %w", err)
	}
	return handover.Acknowledged, epoch, nil
}

func (m *Manager) transactionEnded(lease handover.Lease, outcome handover.Outcome, err error) {
	x := m.txn
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		for _, c := range x.cuts {
			if why := refused.of(c.s.sub.sources(c.s.id)); why != nil && c.s.task == c.t {
				m.blame(c.s, why)
			}
		}
		m.totals.commitsRefused.Add(1)
		m.abortTransaction(err)
		return
	}
	switch outcome {
	case handover.Acknowledged:
		x.failures = 0
		m.totals.commits.Add(1)
		for _, c := range x.cuts {
			m.cutCommitted(c, lease)
		}
		m.openTransaction()
	case handover.Declined:
		m.totals.commitsRefused.Add(1)
		x.phase = txnRefused
		if now, leased := m.machine.Lease(); leased && now != lease {
			m.endTransaction()
			return
		}
		// Mostly a newer lease comes soon; but the coordinator may also have been out of reach for a while.
		number := x.number
		time.AfterFunc(commitRetry, func() {
			m.box.post(func() {
				if number == x.number && x.phase == txnRefused {
					m.endTransaction()
				}
			})
		})
	case handover.Unknown:
		m.totals.commitsUnanswered.Add(1)
		m.abortTransaction(err)
	}
}

func (m *Manager) cutCommitted(c cut, lease handover.Lease) {
	s := c.s
	if s.task != c.t || s.closing {
		return
	}
	s.failures, s.err = 0, nil
	s.processed = c.f.offsets
	m.apply(s, c.f)
	if c.release == nil {
		return
	}
	s.committed = true
	if st := m.machine.Task(s.id); st.Phase != handover.Releasing || st.Release != c.order {
		m.releaseHalted(s) // ordered since, if at all: the token was not in this transaction
		return
	}
	m.totals.releases.Add(1)
	m.cfg.Events.Released(ReleaseInfo{Task: s.id, Release: c.order, Lease: lease, Took: time.Since(s.ordered)})
	m.machine.ReleaseDone(s.id, s.epoch, handover.Acknowledged)
	m.reconcile(s)
}

// openTransaction lets the tasks write what they have held.
func (m *Manager) openTransaction() {
	m.txn.phase, m.txn.cuts = txnOpen, nil
	m.env.wrote.Store(false)
	for _, s := range m.slots {
		if (s.mode == running || s.mode == stopping) && !s.closing {
			m.letWrite(s)
		}
	}
}

// letWrite lets a task write from now on, unless the transaction is not open: then it is let when it is.
func (m *Manager) letWrite(s *slot) {
	if m.txn == nil || m.txn.phase != txnOpen {
		return
	}
	t, p := s.task, m.env.producer
	t.box.post(func() {
		if a := t.active; a != nil && a.held {
			t.producer, a.held, a.ahead = p, false, 0
			t.produce(a)
		}
	})
}

// abortTransaction drops the transaction and every task that may have written in it: they are opened anew
// from their last commit. The producer goes with it: a new one under the same transactional id makes the
// broker settle what the former one left, one way or the other, before anything is read.
func (m *Manager) abortTransaction(why error) {
	x := m.txn
	// Were a fenced producer renewed at once, two processes under one instance id would fence each other for ever.
	x.pending = x.pending || isFenced(why) || !m.mayStart()
	if x.phase == txnClosed {
		return
	}
	m.log.Warn("the transaction is aborted; its tasks are opened anew from their last commit", "error", why)
	if m.env.wrote.Load() {
		m.totals.aborts.Add(1)
	}
	x.failures++
	m.closeProducer()
	for _, t := range sortedTasks(m.slots) {
		s := m.slots[t]
		if s.task != nil && !s.closing && s.mode != replaying {
			// Of the present order, which the plan that is being adopted may have changed: a release must look again.
			m.machine.Failed(t, m.machine.Task(t).Epoch)
			m.closeTask(s, false)
		}
	}
	if x.pending {
		m.machine.ForceRound()
		return
	}
	m.startProducer(x.failures - 1)
}

// planForTransaction goes on after a plan has come.
func (m *Manager) planForTransaction() {
	switch x := m.txn; {
	case x == nil || !m.mayStart():
	case x.pending && !x.starting:
		m.initProducer()
	case x.phase == txnRefused:
		m.endTransaction()
	}
}
