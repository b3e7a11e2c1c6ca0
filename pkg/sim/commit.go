package sim

import (
	"fmt"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// commit is one request to commit offsets or, with a transaction, to add offsets to it or to end it; from its
// sending to the end of all interest in it.
type commit struct {
	kind    request
	proc    *process
	lease   handover.Lease
	parts   []commitPart
	release bool
	opening *work // the first commit of a task that has no committed offset
	arrived bool
	verdict verdict
	waiting bool // the process still waits for the answer
	dropped bool // the request was lost

	// Of a process's transaction.
	transact bool
	producer *producer
	epoch    int
	newEpoch int          // in the answer
	ends     bool         // something was written: the transaction is to be ended
	owned    []commitPart // nothing was written: what is committed without a token
}

// request is what is asked for.
type request uint8

const (
	plainCommit request = iota
	txnCommit           // TxnOffsetCommit
	endTxn              // EndTxn, to commit
)

// commitPart is one task in a commit: all its partitions at once.
type commitPart struct {
	task     *task
	run      *run // nil: the task was not open
	epoch    uint64
	offsets  []int64
	metadata string
	applied  *store // what may be applied to the store once the commit is acknowledged
}

func (c *commit) String() string {
	if c.kind == endTxn {
		return fmt.Sprintf("EndTxn of %s in epoch %d", c.proc.name, c.epoch)
	}
	s := fmt.Sprintf("commit of %s under %s@%d", c.proc.name, c.lease.Member, c.lease.Generation)
	if c.kind == txnCommit {
		s = fmt.Sprintf("transactional %s in epoch %d", s, c.epoch)
	}
	for _, part := range c.parts {
		s += fmt.Sprintf(" %s:%v (%s)", part.task.id, part.offsets, part.metadata)
	}
	return s
}

// part makes a task's share of a commit from what its run has flushed.
func (p *process) part(t *task, m handover.Metadata, epoch uint64) commitPart {
	r := p.runs[t.index]
	return commitPart{
		task: t, run: r, epoch: epoch, offsets: slices.Clone(r.pos), metadata: m.String(),
		applied: &store{pos: r.changelog, cells: slices.Clone(r.cells)},
	}
}

// commitSome commits some of what was done. It reports whether it did anything.
func (p *process) commitSome() bool {
	if p.world.exactly {
		return p.transact()
	}
	return p.commitTasks()
}

// commitTasks flushes some of the tasks that may be committed and sends one request for them.
func (p *process) commitTasks() bool {
	w := p.world
	lease, ok := p.machine.Lease()
	if !ok || lease == p.silent {
		return false
	}
	c := &commit{proc: p, lease: lease, waiting: true}
	for _, t := range w.tasks {
		r := p.runs[t.index]
		if r == nil || r.inflight != nil || !r.hasNews() || !p.mayCommit(t) || !w.quiet && w.chance(0.3) || !p.flush(t) {
			continue
		}
		r.inflight = c
		c.parts = append(c.parts, p.part(t, p.machine.Metadata(t.id), r.epoch))
	}
	if len(c.parts) == 0 {
		return false
	}
	if !w.breaks(SilenceAfterUnanswered) {
		p.machine.CommitSent(c.tasks())
	}
	w.send(c)
	return true
}

func (p *process) mayCommit(t *task) bool {
	if p.world.breaks(LeaseOwns) && p.runs[t.index].orphan {
		return true
	}
	return p.machine.MayCommit(t.id)
}

func (w *world) send(c *commit) {
	w.commits = append(w.commits, c)
	w.note("%s is sent", c)
}

// deliver moves a commit on: the request arrives, or its answer does.
func (w *world) deliver(c *commit) bool {
	switch {
	case !c.arrived && !c.dropped:
		w.arrive(c)
		if !w.quiet && c.waiting && !c.proc.paused && w.chance(w.deafness) {
			c.proc.unanswered(c)
		}
	case c.waiting && c.proc.paused:
		return false
	case c.waiting && c.dropped:
		c.proc.unanswered(c) // it waits for long enough
	case c.waiting:
		c.proc.answer(c)
	}
	if !c.waiting && (c.arrived || c.dropped) {
		w.forget(c)
	}
	return true
}

func (w *world) forget(c *commit) {
	w.commits = slices.DeleteFunc(w.commits, func(o *commit) bool { return o == c })
}

// judge lets the coordinators decide about a request. A transaction begins with the records that are written in
// it, so there is one when offsets are added.
func (w *world) judge(c *commit) verdict {
	transactional := c.kind != plainCommit
	switch {
	case transactional && (c.epoch != c.producer.epoch || c.producer.txn == nil || c.producer.txn.state != ongoing):
		return invalidEpoch
	case c.kind == endTxn || transactional && w.breaks(TransactionNamesLease):
		return accepted
	}
	return w.group.judge(c.lease.Member, c.lease.Generation, transactional)
}

// arrive lets the coordinators decide and, if they accept, does what was asked for.
func (w *world) arrive(c *commit) {
	c.arrived, c.verdict = true, w.judge(c)
	w.note("%s arrives: %s", c, c.verdict)
	if c.verdict != accepted {
		return
	}
	if c.kind == endTxn {
		w.end(c.producer.txn, true)
		if w.newEpochs {
			c.producer.epoch++
		}
		c.newEpoch = c.producer.epoch
		return
	}
	for _, part := range c.parts {
		if c.kind == txnCommit {
			w.addOffsets(c.producer.txn, part)
			continue
		}
		w.commitNo++
		w.commitOffsets(part, w.commitNo, c.proc)
		if w.exactly {
			w.decideOffsets(part, w.commitNo, c.proc)
			w.checkExact(part.task)
		}
	}
}

// answer tells the process what became of a commit.
func (p *process) answer(c *commit) {
	c.waiting = false
	if !p.running() {
		return
	}
	if c.transact {
		p.transactionAnswered(c)
		p.reconcile()
		return
	}
	outcome := handover.Acknowledged
	if c.verdict != accepted {
		outcome = handover.Declined
	}
	for _, part := range c.parts {
		r := part.run
		if r != nil && r.inflight == c {
			r.inflight = nil
		}
		if outcome == handover.Acknowledged && r != nil && p.runs[part.task.index] == r {
			r.acked = part.offsets
			if part.task.stateful {
				p.stores[part.task.index] = part.applied.clone()
			}
		}
	}
	if c.release {
		p.releaseDone(c, outcome)
	} else {
		p.machine.CommitDone(c.tasks(), c.lease, outcome)
		if outcome == handover.Declined {
			p.refused(c)
		}
	}
	if c.opening != nil {
		p.firstDone(c, outcome)
	}
	p.reconcile()
}

// refused: commits go on under the next lease.
func (p *process) refused(c *commit) {
	p.silent = c.lease
	if l, ok := p.machine.Lease(); ok && p.world.breaks(LeaseFixed) && l != c.lease {
		again := *c
		again.lease, again.arrived, again.waiting = l, false, false
		p.world.send(&again)
	}
}

// unanswered tells the process that no answer will come.
func (p *process) unanswered(c *commit) {
	c.waiting = false
	if !p.running() {
		return
	}
	p.world.note("%s has no answer", c)
	if c.transact {
		p.transactionUnanswered(c)
		p.reconcile()
		return
	}
	for _, part := range c.parts {
		if part.run != nil && part.run.inflight == c {
			part.run.inflight = nil
		}
	}
	switch {
	case c.release:
		p.releaseDone(c, handover.Unknown)
	case !p.world.breaks(SilenceAfterUnanswered):
		p.machine.CommitDone(c.tasks(), c.lease, handover.Unknown)
	}
	if c.opening != nil {
		p.firstDone(c, handover.Unknown)
	}
	p.reconcile()
}

func (p *process) releaseDone(c *commit, o handover.Outcome) {
	part := c.parts[0]
	p.machine.ReleaseDone(part.task.id, p.epochOf(part.task, part.epoch), o)
}

func (c *commit) tasks() []assign.TaskID { return tasksOf(c.parts) }

func (c *commit) ownedTasks() []assign.TaskID { return tasksOf(c.owned) }

func tasksOf(parts []commitPart) []assign.TaskID {
	ids := make([]assign.TaskID, len(parts))
	for i, part := range parts {
		ids[i] = part.task.id
	}
	return ids
}
