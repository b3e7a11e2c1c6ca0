package sim

import (
	"fmt"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// commit is one request to commit offsets, from its sending to the end of all interest in it.
type commit struct {
	proc    *process
	lease   handover.Lease
	parts   []commitPart
	release bool
	opening *work // the first commit of a task that has no committed offset
	arrived bool
	verdict verdict
	waiting bool // the process still waits for the answer
	dropped bool // the request was lost
}

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
	s := fmt.Sprintf("commit of %s under %s@%d", c.proc.name, c.lease.Member, c.lease.Generation)
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

// commitSome flushes some of the tasks that may be committed and sends one request for them.
func (p *process) commitSome() bool {
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

// arrive lets the coordinator decide and, if it accepts, writes the offsets.
func (w *world) arrive(c *commit) {
	c.arrived, c.verdict = true, w.group.judge(c.lease.Member, c.lease.Generation)
	w.note("%s arrives: %s", c, c.verdict)
	if c.verdict != accepted {
		return
	}
	for _, part := range c.parts {
		t := part.task
		for i, o := range part.offsets {
			if o < t.committed[i] {
				w.fail("committed offsets never go back", "task %s partition %d: from %d to %d by %s", t.id, i, t.committed[i], o, c.proc.name)
			}
			t.committed[i] = o
		}
		t.metadata = part.metadata
	}
}

// answer tells the process what became of a commit.
func (p *process) answer(c *commit) {
	c.waiting = false
	if !p.running() {
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

func (c *commit) tasks() []assign.TaskID {
	ids := make([]assign.TaskID, len(c.parts))
	for i, part := range c.parts {
		ids[i] = part.task.id
	}
	return ids
}
