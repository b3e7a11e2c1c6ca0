package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// txnPhase is how far a process is with the transaction that all its tasks write in.
type txnPhase uint8

const (
	txnClosed  txnPhase = iota // a producer has to start anew, which settles what it left before
	txnOpen                    // tasks write
	txnCutting                 // each task cuts off what it has done, and holds what it does from then on
	txnEnding                  // a request is on its way
	txnRefused                 // the lease was refused the offsets
)

func (x txnPhase) String() string {
	return [...]string{"closed", "open", "cutting", "ending", "refused"}[x]
}

// transaction is the present transaction of a process.
type transaction struct {
	phase   txnPhase
	epoch   int     // of the producer
	pending bool    // fenced, or without a lease: only a plan says whether to go on
	toCut   []*task // that have not been asked yet
	cuts    []*cut
	sent    *commit // that is on its way
}

// cut is what one task contributes to a transaction.
type cut struct {
	task     *task
	run      *run
	offsets  []int64
	applied  *store
	produced bool
	release  bool // the task has stopped
}

// transact moves the transaction on. It reports whether it did anything.
func (p *process) transact() bool {
	w, x := p.world, &p.txn
	switch x.phase {
	case txnClosed:
		return !x.pending && p.initProducer()
	case txnOpen:
		return p.cutTransaction()
	case txnCutting:
		return p.cutOne()
	case txnRefused:
		if !w.chance(0.2) {
			return false
		}
		p.endTransaction() // the coordinator may have been out of reach for a while
		return true
	default:
		return false
	}
}

// initProducer makes the brokers end what the transactional id has left open, and begins anew.
func (p *process) initProducer() bool {
	w, x := p.world, &p.txn
	pr := w.producer(p.host.instance)
	switch {
	case pr.txn == nil:
		pr.epoch++
		x.phase, x.epoch = txnOpen, pr.epoch
		w.note("%s has the producer epoch %d", p.name, x.epoch)
	case pr.txn.state == ongoing:
		w.fence(pr)
		w.note("%s makes its producer start: what was open is aborted", p.name)
	default:
		return false // CONCURRENT_TRANSACTIONS
	}
	return true
}

// moved says whether the task has done something since the last cut.
func (r *run) moved() bool { return !slices.Equal(r.pos, r.cutAt) }

// cutTransaction begins the end of the transaction, if there is anything to commit.
func (p *process) cutTransaction() bool {
	x := &p.txn
	any := false
	x.toCut = x.toCut[:0]
	for _, t := range p.world.tasks {
		if r := p.runs[t.index]; r != nil && !r.halted {
			any = any || r.moved() || r.stopped
			x.toCut = append(x.toCut, t)
		}
	}
	if !any {
		return false
	}
	x.phase, x.cuts = txnCutting, nil
	return true
}

// cutOne cuts off what one task has done.
func (p *process) cutOne() bool {
	w, x := p.world, &p.txn
	i := w.rng.IntN(len(x.toCut))
	t := x.toCut[i]
	if r := p.runs[t.index]; r != nil && (r.moved() || r.stopped) {
		if !p.write(t) {
			return x.phase != txnCutting
		}
		c := &cut{
			task: t, run: r, offsets: slices.Clone(r.pos), produced: r.wrote, release: r.stopped,
			applied: &store{pos: r.changelog, cells: slices.Clone(r.cells)},
		}
		r.cutAt, r.wrote, r.halted = c.offsets, false, r.stopped
		x.cuts = append(x.cuts, c)
	}
	x.toCut = slices.Delete(x.toCut, i, i+1)
	if len(x.toCut) == 0 {
		p.endTransaction()
	}
	return true
}

// write puts what a task has done since the last time into the transaction. It reports false if it cannot:
// the transaction before it has not ended, or the producer has been fenced.
func (p *process) write(t *task) bool {
	w, r := p.world, p.runs[t.index]
	pr := w.producer(p.host.instance)
	for i := range r.pos {
		n := w.counted(r.pos[i]) - w.counted(r.flushed[i])
		if n == 0 {
			continue
		}
		switch {
		case pr.epoch != p.txn.epoch && w.breaks(RenewalAborts):
			w.fence(pr)
			p.txn.epoch = pr.epoch
			return false
		case pr.epoch != p.txn.epoch:
			w.note("%s cannot write %s: another has its producer", p.name, t.id)
			p.abortTransaction(true, t)
			return false
		case pr.txn != nil && pr.txn.state != ongoing:
			return false // CONCURRENT_TRANSACTIONS
		}
		w.begun(pr, p).write(write{task: t, part: i, cell: r.cells[i], inputs: n})
		r.wrote = true
		r.flushed[i] = r.pos[i]
	}
	r.changelog = t.end()
	return true
}

// mayWrite says whether the task may write into the present transaction.
func (p *process) mayWrite(t *task) bool {
	x := &p.txn
	return x.phase == txnOpen || x.phase != txnClosed && p.world.breaks(HeldAfterCut) || x.phase == txnCutting && slices.Contains(x.toCut, t)
}

// endTransaction commits what was cut off, if the lease still covers all of it.
func (p *process) endTransaction() {
	w, x := p.world, &p.txn
	if len(x.cuts) == 0 {
		x.phase = txnOpen
		return
	}
	lease, _ := p.machine.Lease() // with the lease goes the transaction
	c := &commit{
		proc: p, lease: lease, waiting: true, transact: true, kind: plainCommit,
		producer: w.producer(p.host.instance), epoch: x.epoch,
	}
	produced := false
	var owned []commitPart
	for _, cut := range x.cuts {
		meta := p.metadataOf(cut)
		produced = produced || cut.produced
		part := commitPart{task: cut.task, run: cut.run, offsets: cut.offsets, metadata: meta.String(), applied: cut.applied}
		c.parts = append(c.parts, part)
		if meta.Token == nil {
			owned = append(owned, part)
		}
	}
	if produced && !w.breaks(OffsetsInTransaction) {
		c.kind = txnCommit
	}
	if !produced {
		c.owned = owned // late requests of a transaction are refused by the producer's epoch
		if !w.breaks(SilenceAfterUnanswered) {
			p.machine.CommitSent(c.ownedTasks())
		}
	}
	c.ends = produced
	x.phase, x.sent = txnEnding, c
	w.send(c)
}

// metadataOf is what the commit says of one task. All tasks that were cut off are covered by the lease: a plan
// that takes one away has aborted the transaction (see reconcile).
func (p *process) metadataOf(c *cut) handover.Metadata {
	t := c.task
	meta := p.machine.Metadata(t.id)
	st := p.machine.Task(t.id)
	if st.Phase == handover.Looking {
		// Told again. There is nothing to look for: no release was sent yet, but in this very transaction.
		p.machine.Looked(t.id, st.Epoch, meta)
		st = p.machine.Task(t.id)
	}
	// If it was ordered since the task was cut off, the next cut has the token.
	if _, ok := p.machine.ReleaseSent(t.id, st.Epoch); ok && c.release && !p.world.breaks(TokenInTransaction) {
		meta.Token = &handover.Token{Release: st.Release, Positions: []int64{int64(c.applied.pos)}}
	}
	return meta
}

// transactionAnswered goes on after an answer.
func (p *process) transactionAnswered(c *commit) {
	x := &p.txn
	outcome := handover.Acknowledged
	switch c.verdict {
	case accepted:
	case invalidEpoch:
		outcome = handover.Unknown
	default:
		outcome = handover.Declined
	}
	// Also for a transaction that was aborted meanwhile.
	p.machine.CommitDone(c.ownedTasks(), c.lease, outcome)
	if x.sent != c {
		if outcome == handover.Acknowledged && c.ends && c.kind != endTxn {
			p.sendEnd(c) // who made the request did not hear of the abort
		}
		return
	}
	x.sent = nil
	switch {
	case outcome == handover.Unknown:
		p.abortTransaction(true, nil)
	case outcome == handover.Declined:
		x.phase = txnRefused
		if l, ok := p.machine.Lease(); ok && l != c.lease {
			p.endTransaction()
		}
	case c.ends && c.kind != endTxn:
		x.sent = p.sendEnd(c)
	default:
		if c.kind == endTxn {
			x.epoch = c.newEpoch
		}
		p.transactionCommitted()
	}
}

// sendEnd ends the transaction that offsets were added to.
func (p *process) sendEnd(c *commit) *commit {
	end := &commit{kind: endTxn, proc: p, waiting: true, transact: true, producer: c.producer, epoch: c.epoch}
	p.world.send(end)
	return end
}

// transactionUnanswered: what became of it is known once a new epoch of the producer has settled it.
func (p *process) transactionUnanswered(c *commit) {
	w, x := p.world, &p.txn
	if !w.breaks(SilenceAfterUnanswered) {
		p.machine.CommitDone(c.ownedTasks(), c.lease, handover.Unknown)
	}
	switch {
	case x.sent != c:
	case w.breaks(UnknownIsNotSuccess) && c.kind == endTxn:
		p.transactionCommitted()
		x.phase = txnClosed
	case w.breaks(UnknownIsNotFailure) && c.kind == endTxn:
		for _, cut := range x.cuts { // it is done once more, from memory
			r := cut.run
			r.flushed, r.cutAt, r.halted = slices.Clone(r.acked), slices.Clone(r.acked), false
		}
		x.phase, x.sent, x.cuts = txnClosed, nil, nil
	default:
		p.abortTransaction(false, nil)
	}
}

// transactionCommitted takes what was cut off as done.
func (p *process) transactionCommitted() {
	x := &p.txn
	for _, c := range x.cuts {
		i, r := c.task.index, c.run
		if p.runs[i] != r {
			continue
		}
		r.acked = c.offsets
		if c.task.stateful {
			p.stores[i] = c.applied.clone()
		}
		if c.release && !p.world.breaks(TokenInTransaction) { // if it was ordered anew since, the owner looks
			p.machine.ReleaseDone(c.task.id, p.machine.Task(c.task.id).Epoch, handover.Acknowledged)
		}
	}
	x.phase, x.cuts, x.sent = txnOpen, nil, nil
}

// abortTransaction drops the transaction and every task of the process: they are opened anew from what is
// committed once the producer has started anew.
func (p *process) abortTransaction(fenced bool, cause *task) {
	w, x := p.world, &p.txn
	_, leased := p.machine.Lease()
	x.pending = x.pending || fenced || !leased || p.machine.Superseded()
	if x.phase == txnClosed {
		return
	}
	w.result.Aborts++
	x.phase, x.cuts, x.toCut, x.sent = txnClosed, nil, nil, nil
	if w.breaks(NewEpochAfterAbort) && !fenced {
		x.phase, x.pending = txnOpen, false
	}
	for i, t := range w.tasks {
		r := p.runs[i]
		if r == nil || w.breaks(AbortRewindsAll) && t != cause {
			continue
		}
		p.runs[i] = nil
		epoch := p.machine.Task(t.id).Epoch
		if w.breaks(AbortEndsReleases) {
			epoch = r.epoch
		}
		p.machine.Failed(t.id, epoch)
	}
	w.note("%s aborts its transaction (fenced: %v): %s", p.name, fenced, p)
	if x.pending {
		p.machine.ForceRound()
	}
}

// planForTransaction goes on after a plan has come.
func (p *process) planForTransaction() {
	x := &p.txn
	if p.machine.Superseded() {
		return
	}
	x.pending = false
	if x.phase == txnRefused {
		p.endTransaction()
	}
}

// lastTransaction commits what a process that exits in good order has done, if nothing is in the way.
func (p *process) lastTransaction() {
	w, x := p.world, &p.txn
	for x.phase == txnOpen && p.cutTransaction() || x.phase == txnCutting && p.cutOne() {
	}
	for c := x.sent; c != nil && !c.arrived; c = x.sent {
		w.arrive(c)
		p.answer(c)
		w.forget(c)
	}
}
