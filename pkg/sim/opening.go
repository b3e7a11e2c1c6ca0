package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// fetch reads the committed offset. While a transaction is pending on it, it is unstable: false.
func (p *process) fetch(t *task, wk *work) bool {
	if len(t.pending) > 0 && !p.world.breaks(StableOffsets) {
		return false
	}
	wk.offsets = slices.Clone(t.committed)
	found, err := handover.ParseMetadata(t.metadata)
	if err != nil {
		found = handover.Metadata{}
	}
	wk.found = found
	return true
}

// fence ends a transaction that an instance has left open which is not in the group any more. It reports whether
// there was one.
func (p *process) fence() bool {
	w := p.world
	if !w.exactly || w.breaks(FenceBeforeOpen) || !w.known(p) || !w.quiet && w.chance(0.1) { // the brokers may not allow it
		return false
	}
	for _, pr := range w.producers {
		if pr.id != p.host.instance && w.orphaned(pr) {
			w.result.Fences++
			w.note("%s ends the transaction of %s, whose instance is gone", p.name, pr.txn.proc.name)
			w.fence(pr)
			return true
		}
	}
	return false
}

// orphaned says whether the producer has a transaction open, and its instance is not in the group.
func (w *world) orphaned(pr *producer) bool {
	inGroup := func(m *member) bool { return m.proc.host.instance == pr.id }
	return pr.txn != nil && pr.txn.state == ongoing && !slices.ContainsFunc(w.group.members, inGroup)
}

// open brings an owned task up: the committed offset first, then the changelog's end, then the state.
func (p *process) open(t *task) bool {
	w, wk := p.world, p.workOn(t)
	if r := p.runs[t.index]; r != nil { // ReopenAfterRelease is broken
		if p.machine.Opened(t.id, wk.epoch, r.found) {
			r.epoch, r.stopped = wk.epoch, false
		}
		return true
	}
	switch wk.stage {
	case fetch:
		if !p.mayOpen(t) {
			return false
		}
		if !p.fetch(t, wk) {
			return p.fence()
		}
		wk.stage = endOthers
		if slices.Contains(wk.offsets, none) {
			wk.stage = commitFirst
		}
	case commitFirst:
		return p.commitFirst(t, wk)
	case endOthers:
		if p.fence() {
			return true
		}
		wk.stage, wk.fenced = askEnd, !w.breaks(FenceBeforeOpen)
	case askEnd:
		wk.target, wk.stage = t.end(), restore
		if w.breaks(RestoreToLogEnd) {
			wk.target = t.readable()
		}
	case restore:
		if t.stateful && p.store(t).pos < wk.target {
			return p.replay(t, 1+w.rng.IntN(6), wk.target)
		}
		wk.stage = start
	case start:
		p.start(t, wk)
	default:
		return false
	}
	return true
}

func (p *process) mayOpen(t *task) bool {
	w := p.world
	return (p.machine.MayOpen(t.id) || w.breaks(OpenAfterAnswer)) && (!w.exactly || p.txn.phase != txnClosed || w.breaks(SettledBeforeOpen))
}

// commitFirst commits where a task starts that has no committed offset.
func (p *process) commitFirst(t *task, wk *work) bool {
	lease, ok := p.machine.Lease()
	if !ok || lease == p.silent {
		return false
	}
	wk.offsets = make([]int64, len(wk.offsets))
	wk.found = handover.Metadata{Committer: lease.Member}
	if !p.world.breaks(SilenceAfterUnanswered) {
		p.machine.CommitSent([]assign.TaskID{t.id})
	}
	p.world.send(&commit{
		proc: p, lease: lease, waiting: true, opening: wk,
		parts: []commitPart{{task: t, epoch: wk.epoch, offsets: wk.offsets, metadata: wk.found.String()}},
	})
	wk.stage = await
	return true
}

// firstDone goes on with an opening that had to commit where the task starts.
func (p *process) firstDone(c *commit, o handover.Outcome) {
	i := c.parts[0].task.index
	switch {
	case p.work[i] != c.opening:
	case o == handover.Acknowledged:
		c.opening.stage = endOthers
	default:
		p.work[i] = nil // from the start
	}
}

// start makes a task that is up to date a run, if the order still stands.
func (p *process) start(t *task, wk *work) {
	w := p.world
	epoch := p.epochOf(t, wk.epoch)
	p.work[t.index] = nil
	if !p.machine.Opened(t.id, epoch, wk.found) {
		return
	}
	r := &run{
		task: t, epoch: epoch, found: wk.found,
		pos: slices.Clone(wk.offsets), flushed: slices.Clone(wk.offsets), acked: wk.offsets, cutAt: wk.offsets,
	}
	switch {
	case t.stateful:
		s := p.store(t)
		r.cells, r.changelog = slices.Clone(s.cells), s.pos
	case w.exactly:
		for _, o := range wk.offsets {
			r.cells = append(r.cells, cell{below: o, applied: w.counted(o)})
		}
	default:
		r.cells = slices.Clone(t.durable)
	}
	p.runs[t.index], p.opening[t.index] = r, wk.offsets
	w.note("%s runs %s at %v, state %v", p.name, t.id, r.pos, r.cells)
	if w.exactly && w.leased(p) {
		w.checkRun(p, r)
	}
}
