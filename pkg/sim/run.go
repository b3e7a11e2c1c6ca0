package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// run is a task that is open to process: where it is in its input, and its state in memory.
type run struct {
	task      *task
	epoch     uint64
	found     handover.Metadata // of the offset that it was opened at
	pos       []int64           // per partition: the next input
	cells     []cell
	changelog int     // how far the changelog is in cells; equal to its end after a flush
	flushed   []int64 // pos of the last flush
	acked     []int64 // pos of the last acknowledged commit
	inflight  *commit
	stopped   bool // told to release
	orphan    bool // LeaseOwns is broken: goes on without being named in the plan

	// Exactly once.
	cutAt  []int64 // pos of the last cut
	wrote  bool    // something was written since
	halted bool    // stopped, and cut off for the last time
}

// hasNews says whether there is something to commit.
func (r *run) hasNews() bool { return !slices.Equal(r.pos, r.acked) }

// mayDouble is called when the run ends: what was flushed and not acknowledged may be done again.
func (r *run) mayDouble() {
	if !slices.Equal(r.flushed, r.acked) {
		r.task.mayDouble = true
	}
}

// consume processes up to n inputs of one partition. It reports whether there were any.
func (w *world) consume(p *process, r *run, part int, n int64) bool {
	t := r.task
	n = min(n, t.input[part]-r.pos[part])
	for range n {
		c := &r.cells[part]
		if c.below < r.pos[part] && !w.exactly {
			w.fail("state holds what its offset covers", "%s processes %s partition %d at %d with state of inputs below %d",
				p.name, t.id, part, r.pos[part], c.below)
		}
		c.applied += w.counted(r.pos[part]+1) - w.counted(r.pos[part])
		r.pos[part]++
		c.below = max(c.below, r.pos[part])
	}
	return n > 0
}

// flush writes what was processed since the last flush to the changelog. It reports false if the process's
// own clock forbids it.
func (p *process) flush(t *task) bool {
	w, r := p.world, p.runs[t.index]
	if !w.mayAppend(p) {
		if !w.known(p) {
			w.note("%s: its own clock says that the session is over", p.name)
			p.lost()
		}
		return false
	}
	if t.stateful && !w.unfenced && r.changelog != t.end() {
		w.fail("one writer", "%s flushes %s at changelog position %d, but the changelog ends at %d", p.name, t.id, r.changelog, t.end())
	}
	for i := range r.pos {
		if r.pos[i] == r.flushed[i] {
			continue
		}
		c := r.cells[i]
		if !t.stateful { // outputs add up
			c = cell{below: max(t.durable[i].below, r.pos[i]), applied: t.durable[i].applied + r.pos[i] - r.flushed[i]}
		}
		t.append(entry{part: i, cell: c})
	}
	r.changelog = t.end()
	r.flushed = slices.Clone(r.pos)
	return true
}

// reconcile makes the open tasks fit the machine's phases.
func (p *process) reconcile() {
	w := p.world
	for i, t := range w.tasks {
		st := p.machine.Task(t.id)
		r := p.runs[i]
		switch {
		case r == nil:
		case st.Phase == handover.Running && r.epoch == st.Epoch:
		case st.Phase.InRelease():
			r.stopped = true
		case w.exactly && st.Phase == handover.Released:
			p.runs[i] = nil
		case w.breaks(LeaseCoversAll):
			p.runs[i] = nil
		case w.exactly:
			p.drop(t)
		case w.breaks(ReopenAfterRelease) && st.Phase == handover.Opening && r.stopped && r.inflight == nil:
			// Kept, to be resumed from memory.
		case w.breaks(LeaseOwns) && st.Phase == handover.Idle && !r.stopped:
			r.orphan = true
		default:
			p.drop(t)
		}
		if !st.Phase.Copies() {
			p.checks[i] = 0
		}
		if !st.Phase.Copies() && st.Phase != handover.Taking {
			p.caughtUp[i] = false
		}
	}
}

// drop closes a task without a commit. What it may have written in a transaction goes with that.
func (p *process) drop(t *task) {
	r := p.runs[t.index]
	if r == nil {
		return
	}
	p.runs[t.index] = nil
	if p.world.exactly {
		p.abortTransaction(false, t)
	} else {
		r.mayDouble()
	}
}

// replay brings the process's copy of a task on, by up to n records and not beyond end. It reports whether
// that was possible.
func (p *process) replay(t *task, n, end int) bool {
	s, dirty := p.store(t), p.world.breaks(ReadCommitted)
	if !dirty {
		end = min(end, t.readable())
	}
	before := s.pos
	s.replay(t, n, end, dirty)
	return s.pos != before
}

// store is the process's copy of a task's state, an empty one if there was none.
func (p *process) store(t *task) *store {
	if p.stores[t.index] == nil {
		p.stores[t.index] = newStore(t)
	}
	return p.stores[t.index]
}
