package sim

import "github.com/streamworker/streamworker/pkg/tasks/handover"

// check looks at the present state:
//
//   - committed offsets never pass what the changelog holds (and never go back: see arrive);
//   - a task runs on one process at most under a lease that the coordinator would accept, and, but in unfenced
//     histories, on one member of the group at most;
//   - who runs a task under a good lease is not behind its committed offset, and its state holds what its
//     offset covers (also checked at every input: see consume);
//   - a changelog has one writer at a time (see flush);
//   - nothing is counted twice, unless a flush and its commit were torn apart.
//
// Under exactly once all that is decided of a task is of one piece, at any time and whatever died (see checkExact),
// and so is what a task starts with; a changelog takes no record from two writers in turn (see end).
func (w *world) check() {
	w.noteCaughtUp()
	for _, t := range w.tasks {
		w.checkRunners(t)
		if w.exactly {
			w.checkExact(t)
			continue
		}
		for i := range t.input {
			if t.durable[i].below < t.committed[i] {
				w.fail("no loss", "task %s partition %d: committed is %d, the changelog holds inputs below %d",
					t.id, i, t.committed[i], t.durable[i].below)
			}
			if t.durable[i].applied > t.durable[i].below && !t.mayDouble {
				w.fail("nothing doubled", "task %s partition %d: %d inputs counted %d times, and no flush lost its commit",
					t.id, i, t.durable[i].below, t.durable[i].applied)
			}
		}
	}
}

func (w *world) checkRunners(t *task) {
	var leased, known *process
	for _, h := range w.hosts {
		p := h.proc
		if p == nil {
			continue
		}
		r := p.runs[t.index]
		if r == nil || r.stopped || p.machine.Task(t.id).Phase != handover.Running && !r.orphan {
			continue
		}
		if w.known(p) && !w.unfenced {
			if known != nil {
				w.fail("one runner", "%s and %s, both members of the group, run task %s", known.name, p.name, t.id)
			}
			known = p
		}
		if !w.leased(p) {
			continue
		}
		if leased != nil {
			w.fail("one runner", "%s and %s run task %s under leases of generation %d", leased.name, p.name, t.id, w.group.gen)
		}
		leased = p
		w.checkRun(p, r)
	}
}

// checkRun looks at a task that runs under a good lease.
func (w *world) checkRun(p *process, r *run) {
	t := r.task
	for i := range r.pos {
		c := r.cells[i]
		if r.pos[i] < t.committed[i] {
			w.fail("no runner behind the committed offset", "%s runs %s partition %d at %d, committed is %d",
				p.name, t.id, i, r.pos[i], t.committed[i])
		}
		if !w.exactly && c.below < r.pos[i] || w.exactly && !w.exact(c, r.pos[i]) {
			w.fail("state holds what its offset covers", "%s runs %s partition %d at %d with state of inputs below %d, %d of them counted",
				p.name, t.id, i, r.pos[i], c.below, c.applied)
		}
	}
}

// noteCaughtUp keeps, apart from what learners say of themselves, who has caught up.
func (w *world) noteCaughtUp() {
	for _, h := range w.hosts {
		if h.proc == nil {
			continue
		}
		for i, t := range w.tasks {
			if s := h.proc.stores[i]; h.proc.machine.Task(t.id).Phase.Copies() && s != nil && t.end()-s.pos <= acceptableLag {
				h.proc.caughtUp[i] = true
			}
		}
	}
}

// counted is how many of the first n inputs change the state or write output. Under at least once all do.
func (w *world) counted(n int64) int64 {
	if !w.exactly {
		return n
	}
	return n - n/4
}

// exact says whether a cell holds what an offset covers, each input once.
func (w *world) exact(c cell, offset int64) bool {
	offset = max(offset, 0)
	return c.applied == w.counted(offset) && w.counted(c.below) == c.applied
}

// checkExact demands that what is decided of a task is of one piece: its offsets, and the state or the output.
func (w *world) checkExact(t *task) {
	for i, o := range t.decided {
		if c := t.durable[i]; !w.exact(c, o) {
			w.fail("exactly once", "task %s partition %d: committed is %d, which is %d inputs that count; state or output has %d of the inputs below %d",
				t.id, i, o, w.counted(max(o, 0)), c.applied, c.below)
		}
	}
}
