package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// look fetches the committed offset for an owner that was told to release again.
func (p *process) look(t *task) bool {
	w, wk := p.world, p.workOn(t)
	if wk.stage == fetch {
		if !p.fetch(t, wk) {
			return p.fence()
		}
		wk.stage = use
		return true
	}
	p.opening[t.index] = wk.offsets
	found := wk.found
	if w.breaks(LookWhenToldAgain) {
		found = p.machine.Metadata(t.id)
	}
	p.machine.Looked(t.id, p.epochOf(t, wk.epoch), found)
	p.reconcile()
	w.result.ToldAgain++
	if p.machine.Task(t.id).Phase == handover.Released {
		w.result.FoundReleased++
	}
	w.note("%s looked at %s: %v (%s): %s", p.name, t.id, wk.offsets, wk.found, p)
	return true
}

// release flushes and commits the task with the token. A task that is not open here hands over what is
// committed. One that has done something in a transaction is released with that (see transact).
func (p *process) release(t *task) bool {
	w, wk := p.world, p.workOn(t)
	r := p.runs[t.index]
	late := w.breaks(FlushBeforeRelease)
	if w.exactly && r != nil && !w.breaks(TokenInTransaction) {
		return false
	}
	switch wk.stage {
	case fetch:
		switch {
		case !w.exactly:
			if r != nil && !late && !p.flush(t) {
				return false
			}
		case r == nil:
			if p.fence() {
				return true
			}
		case !p.mayWrite(t) || !p.write(t): // TokenInTransaction is broken
			return false
		}
		wk.stage = send
	case send:
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
			part.offsets = slices.Clone(p.opening[t.index])
			for i := range part.offsets {
				part.offsets[i] = max(part.offsets[i], 0)
			}
			m.Token.Positions = []int64{int64(t.end())}
		}
		part.metadata = m.String()
		w.send(&commit{proc: p, lease: lease, waiting: true, release: true, parts: []commitPart{part}})
		wk.stage = await
		if late && !w.exactly {
			wk.stage = flushLate
		}
	case flushLate:
		if r != nil {
			p.flush(t)
		}
		wk.stage = await
	default:
		return false
	}
	return true
}

// poll looks for the token of the task's release.
func (p *process) poll(t *task) bool {
	w, wk := p.world, p.workOn(t)
	st := p.machine.Task(t.id)
	if wk.stage == fetch {
		if !p.fetch(t, wk) {
			return false
		}
		tok := wk.found.Token
		if w.breaks(TokenAwaited) {
			tok = &handover.Token{Release: st.Release, Positions: []int64{int64(t.end())}}
		}
		if tok == nil || tok.Release != st.Release && !w.breaks(TokenIdentity) {
			return false
		}
		wk.found.Token = tok
		wk.stage = use
		return true
	}
	tok := *wk.found.Token
	if w.breaks(TokenIdentity) {
		tok.Release = st.Release
	}
	wk.stage = fetch
	if !p.machine.TokenSeen(t.id, p.epochOf(t, wk.epoch), &tok) {
		return true
	}
	now := p.machine.Task(t.id)
	next := &work{phase: now.Phase, epoch: now.Epoch, stage: restore, fenced: true, offsets: wk.offsets, found: wk.found, target: int(tok.Positions[0])}
	if w.breaks(TokenPositions) {
		next.stage = start
	}
	p.work[t.index] = next
	w.result.Handovers++
	w.note("%s sees the token of %s: %s", p.name, t.id, wk.found)
	return true
}
