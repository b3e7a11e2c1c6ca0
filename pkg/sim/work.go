package sim

import (
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// stage is the next thing to do for a task in its phase.
type stage uint8

const (
	fetch       stage = iota // the committed offset; a release flushes here
	commitFirst              // there is none: commit where the task starts
	endOthers                // exactly once: end what dead writers have left open
	askEnd                   // of the changelog
	restore                  // up to it, or to the token's position
	start                    // to process
	use                      // what was fetched
	send                     // the release
	flushLate                // FlushBeforeRelease is broken
	await                    // an answer
)

// work is what is under way for a task in one phase: a fetch of its committed offset, a restore.
type work struct {
	phase   handover.Phase
	epoch   uint64
	stage   stage
	offsets []int64
	found   handover.Metadata
	fenced  bool // what dead writers had left open was looked for
	target  int  // the changelog position to restore to
}

// workOn returns the work of the task's phase, begun anew if the order has changed.
func (p *process) workOn(t *task) *work {
	st := p.machine.Task(t.id)
	wk := p.work[t.index]
	if wk == nil || wk.phase != st.Phase || wk.epoch != st.Epoch && !p.world.breaks(OrderOutdatesWork) {
		wk = &work{phase: st.Phase, epoch: st.Epoch}
		p.work[t.index] = wk
	}
	return wk
}

// epochOf is the epoch that the outcome of work is told with.
func (p *process) epochOf(t *task, epoch uint64) uint64 {
	if p.world.breaks(OrderOutdatesWork) {
		return p.machine.Task(t.id).Epoch
	}
	return epoch
}

// taskStep does the next thing for a task. It reports whether it did anything.
func (p *process) taskStep(t *task) bool {
	w := p.world
	switch p.machine.Task(t.id).Phase {
	case handover.Opening:
		return p.open(t)
	case handover.Running:
		return p.processSome(t)
	case handover.Looking:
		return p.look(t)
	case handover.Releasing:
		return p.release(t)
	case handover.Taking:
		if w.chance(0.7) {
			return p.poll(t) || p.tail(t)
		}
		return p.tail(t) || p.poll(t)
	case handover.Learning, handover.Standby:
		moved := p.tail(t)
		return p.checkLag(t) || moved
	default:
		if r := p.runs[t.index]; r != nil && r.orphan {
			return w.consume(p, r, w.rng.IntN(len(r.pos)), 2)
		}
		return false
	}
}

func (p *process) processSome(t *task) bool {
	w, r := p.world, p.runs[t.index]
	if w.quiet {
		did := false
		for i := range r.pos {
			did = w.consume(p, r, i, t.input[i]) || did
		}
		return did
	}
	did := w.consume(p, r, w.rng.IntN(len(r.pos)), int64(1+w.rng.IntN(3)))
	if w.exactly && p.mayWrite(t) && w.chance(0.3) {
		did = p.write(t) || did
	}
	return did
}

// tail applies some of the changelog to a copy.
func (p *process) tail(t *task) bool {
	return t.stateful && p.replay(t, 1+p.world.rng.IntN(4), t.end())
}

// checkLag tells the machine whether a copy has caught up: twice in a row within the acceptable lag.
func (p *process) checkLag(t *task) bool {
	st := p.machine.Task(t.id)
	near := t.end()-p.store(t).pos <= acceptableLag
	p.checks[t.index]++
	if !near && !p.world.breaks(ReadyWhenCaughtUp) {
		p.checks[t.index] = 0
	}
	ready := p.checks[t.index] >= 2
	p.machine.CopyReady(t.id, st.Epoch, ready)
	if ready != st.Ready {
		p.world.note("%s: copy of %s ready: %v", p.name, t.id, ready)
	}
	return ready != st.Ready || near && !ready
}
