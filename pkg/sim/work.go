package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// stage is the next thing to do for a task in its phase.
type stage uint8

const (
	fetch       stage = iota // the committed offset; a release flushes here
	commitFirst              // there is none: commit where the task starts
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
		if p.machine.Opened(t.id, wk.epoch, r.found) {
			r.epoch, r.stopped = wk.epoch, false
		}
		return true
	}
	switch wk.stage {
	case fetch:
		if !p.machine.MayOpen(t.id) && !w.breaks(OpenAfterAnswer) {
			return false
		}
		wk.fetch(t)
		wk.stage = askEnd
		if slices.Contains(wk.offsets, none) {
			wk.stage = commitFirst
		}
	case commitFirst:
		lease, ok := p.machine.Lease()
		if !ok || lease == p.silent {
			return false
		}
		wk.offsets = make([]int64, len(wk.offsets))
		wk.found = handover.Metadata{Committer: lease.Member}
		if !w.breaks(SilenceAfterUnanswered) {
			p.machine.CommitSent([]assign.TaskID{t.id})
		}
		w.send(&commit{
			proc: p, lease: lease, waiting: true, opening: wk,
			parts: []commitPart{{task: t, epoch: wk.epoch, offsets: wk.offsets, metadata: wk.found.String()}},
		})
		wk.stage = await
	case askEnd:
		wk.target = t.end()
		wk.stage = restore
	case restore:
		if t.stateful {
			s := p.store(t)
			s.replay(t, 1+w.rng.IntN(6), wk.target)
			if s.pos < wk.target {
				return true
			}
		}
		wk.stage = start
	case start:
		p.start(t, wk)
	default:
		return false
	}
	return true
}

// start makes a task that is up to date a run, if the order still stands.
func (p *process) start(t *task, wk *work) {
	epoch := p.epochOf(t, wk.epoch)
	p.work[t.index] = nil
	if !p.machine.Opened(t.id, epoch, wk.found) {
		return
	}
	r := &run{
		task: t, epoch: epoch, found: wk.found,
		pos: slices.Clone(wk.offsets), flushed: slices.Clone(wk.offsets), acked: wk.offsets,
	}
	if t.stateful {
		s := p.store(t)
		r.cells, r.changelog = slices.Clone(s.cells), s.pos
	} else {
		r.cells = slices.Clone(t.durable)
	}
	p.runs[t.index] = r
	p.world.note("%s runs %s at %v, state %v", p.name, t.id, r.pos, r.cells)
}

// firstDone goes on with an opening that had to commit where the task starts.
func (p *process) firstDone(c *commit, o handover.Outcome) {
	i := c.parts[0].task.index
	switch {
	case p.work[i] != c.opening:
	case o == handover.Acknowledged:
		c.opening.stage = askEnd
	default:
		p.work[i] = nil // from the start
	}
}

// look fetches the committed offset for an owner that was told to release again.
func (p *process) look(t *task) bool {
	w, wk := p.world, p.workOn(t)
	if wk.stage == fetch {
		wk.fetch(t)
		wk.stage = use
		return true
	}
	p.looked[t.index] = wk.offsets
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
// committed.
func (p *process) release(t *task) bool {
	w, wk := p.world, p.workOn(t)
	r := p.runs[t.index]
	late := w.breaks(FlushBeforeRelease)
	switch wk.stage {
	case fetch:
		if r != nil && !late && !p.flush(t) {
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
			part.offsets = slices.Clone(p.looked[t.index])
			for i := range part.offsets {
				part.offsets[i] = max(part.offsets[i], 0)
			}
			m.Token.Positions = []int64{int64(t.end())}
		}
		part.metadata = m.String()
		w.send(&commit{proc: p, lease: lease, waiting: true, release: true, parts: []commitPart{part}})
		wk.stage = await
		if late {
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
		wk.fetch(t)
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
	next := &work{phase: now.Phase, epoch: now.Epoch, stage: restore, offsets: wk.offsets, found: wk.found, target: int(tok.Positions[0])}
	if w.breaks(TokenPositions) {
		next.stage = start
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
