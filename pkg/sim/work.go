package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// work is what is under way for a task in one phase: a fetch of its committed offset, a restore.
type work struct {
	phase   handover.Phase
	epoch   uint64
	stage   int
	offsets []int64
	found   handover.Metadata
	target  int // the changelog position to restore to
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
	case handover.Learning:
		caughtUp := p.tail(t)
		return p.checkLag(t) || caughtUp
	case handover.Standby:
		return p.tail(t)
	default:
		if r := p.runs[t.index]; r != nil && r.orphan {
			return w.consume(p, r, w.rng.IntN(len(r.pos)), 2)
		}
		return false
	}
}

func (p *process) processSome(t *task) bool {
	w, r := p.world, p.runs[t.index]
	if !w.quiet {
		return w.consume(p, r, w.rng.IntN(len(r.pos)), int64(1+w.rng.IntN(3)))
	}
	did := false
	for i := range r.pos {
		did = w.consume(p, r, i, t.input[i]) || did
	}
	return did
}

// fetch reads the committed offset.
func (wk *work) fetch(t *task) {
	wk.offsets = slices.Clone(t.committed)
	found, err := handover.ParseMetadata(t.metadata)
	if err == nil {
		wk.found = found
	} else {
		wk.found = handover.Metadata{}
	}
}

// open brings an owned task up: the committed offset first, then the changelog's end, then the state.
func (p *process) open(t *task) bool {
	w, wk := p.world, p.workOn(t)
	if r := p.runs[t.index]; r != nil { // ReopenAfterRelease is broken
		if p.machine.Opened(t.id, wk.epoch, r.committer) {
			r.epoch, r.stopped = wk.epoch, false
		}
		return true
	}
	switch wk.stage {
	case 0:
		if !p.machine.MayOpen(t.id) && !w.breaks(OpenAfterAnswer) {
			return false
		}
		wk.fetch(t)
		wk.stage = 1
	case 1:
		wk.target = t.end()
		wk.stage = 2
	case 2:
		if t.stateful {
			s := p.store(t)
			s.replay(t, 1+w.rng.IntN(6), wk.target)
			if s.pos < wk.target {
				return true
			}
		}
		wk.stage = 3
	case 3:
		epoch := p.epochOf(t, wk.epoch)
		p.work[t.index] = nil
		if !p.machine.Opened(t.id, epoch, wk.found.Committer) {
			return true
		}
		r := &run{
			task: t, epoch: epoch, committer: wk.found.Committer,
			pos: slices.Clone(wk.offsets), flushed: slices.Clone(wk.offsets), acked: wk.offsets,
		}
		if t.stateful {
			s := p.store(t)
			r.cells, r.changelog = slices.Clone(s.cells), s.pos
		} else {
			r.cells = slices.Clone(t.durable)
		}
		p.runs[t.index] = r
		w.note("%s runs %s at %v, state %v", p.name, t.id, r.pos, r.cells)
	}
	return true
}

// look fetches the committed offset for an owner that was told to release again.
func (p *process) look(t *task) bool {
	w, wk := p.world, p.workOn(t)
	if wk.stage == 0 {
		wk.fetch(t)
		wk.stage = 1
		return true
	}
	p.looked[t.index] = wk.offsets
	found := wk.found
	if w.breaks(LookWhenToldAgain) {
		found = handover.Metadata{Committer: p.member}
	}
	p.machine.Looked(t.id, p.epochOf(t, wk.epoch), found)
	p.reconcile()
	w.result.ToldAgain++
	if p.machine.Task(t.id).Phase == handover.Released {
		w.result.FoundReleased++
	}
	w.note("%s looked at %s: %v by %s: %s", p.name, t.id, wk.offsets, wk.found.Committer, p)
	return true
}

// release flushes and commits the task with the token. A task that is not open here hands over what is
// committed.
func (p *process) release(t *task) bool {
	w, wk := p.world, p.workOn(t)
	r := p.runs[t.index]
	late := w.breaks(FlushBeforeRelease)
	switch wk.stage {
	case 0:
		if r != nil && !late && !p.flush(t) {
			return false
		}
		wk.stage = 1
	case 1:
		lease, ok := p.machine.ReleaseSent(t.id, p.epochOf(t, wk.epoch))
		if !ok {
			return false
		}
		m := handover.Metadata{Committer: lease.Member, Token: &handover.Token{Release: p.machine.Task(t.id).Release}}
		part := commitPart{task: t, epoch: wk.epoch}
		if r != nil {
			part = p.part(t, m, wk.epoch)
			m.Token.Positions = []int64{int64(r.changelog)}
		} else {
			part.offsets = p.looked[t.index]
			m.Token.Positions = []int64{int64(t.end())}
		}
		part.metadata = m.String()
		w.send(&commit{proc: p, lease: lease, waiting: true, release: true, parts: []commitPart{part}})
		wk.stage = 2
	case 2:
		if r != nil && late {
			p.flush(t)
		}
		wk.stage = 3
	default:
		return false // waits for the answer
	}
	return true
}

// poll looks for the token of the task's release.
func (p *process) poll(t *task) bool {
	w, wk := p.world, p.workOn(t)
	st := p.machine.Task(t.id)
	if wk.stage == 0 {
		wk.fetch(t)
		tok := wk.found.Token
		if w.breaks(TokenAwaited) {
			tok = &handover.Token{Release: st.Release, Positions: []int64{int64(t.end())}}
		}
		if tok == nil || tok.Release != st.Release && !w.breaks(TokenIdentity) {
			return false
		}
		wk.found.Token = tok
		wk.stage = 1
		return true
	}
	tok := *wk.found.Token
	if w.breaks(TokenIdentity) {
		tok.Release = st.Release
	}
	wk.stage = 0
	if !p.machine.TokenSeen(t.id, p.epochOf(t, wk.epoch), &tok) {
		return true
	}
	now := p.machine.Task(t.id)
	next := &work{phase: now.Phase, epoch: now.Epoch, stage: 2, offsets: wk.offsets, found: wk.found, target: int(tok.Positions[0])}
	if w.breaks(TokenPositions) {
		next.stage = 3
	}
	p.work[t.index] = next
	w.result.Handovers++
	w.note("%s sees the token of %s: %s", p.name, t.id, wk.found)
	return true
}

// tail applies some of the changelog to a copy.
func (p *process) tail(t *task) bool {
	if !t.stateful {
		return false
	}
	s := p.store(t)
	before := s.pos
	s.replay(t, 1+p.world.rng.IntN(4), t.end())
	return s.pos != before
}

// checkLag tells the machine whether a learner has caught up: twice in a row within the acceptable lag.
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
		p.world.note("%s: learner of %s ready: %v", p.name, t.id, ready)
	}
	return ready != st.Ready || near && !ready
}
