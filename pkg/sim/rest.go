package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// maxRounds bounds the rounds from the last event to rest: each task may move once or twice, and a few
// rounds end what was under way.
func (w *world) maxRounds() int { return 10 + 3*len(w.tasks) + 2*len(w.hosts) }

// maxSteps bounds the attempts to do something in that time.
const maxSteps = 200_000

// settle runs everything that can run, fault-free, until nothing can, and demands that the end is good.
func (w *world) settle() {
	rounds, steps := w.result.Rounds, w.step
	for progress := true; progress; {
		progress = false
		for _, act := range w.actions() {
			w.step++
			if act() {
				progress = true
				w.check()
			}
			if w.violation != nil {
				return
			}
		}
		progress = progress || w.timeOutDead()
		if n := w.result.Rounds - rounds; n > w.maxRounds() || w.step-steps > maxSteps {
			w.fail("rest", "%d rounds and %d steps since the last event, and no end", n, w.step-steps)
			return
		}
	}
	w.result.RestRounds = max(w.result.RestRounds, w.result.Rounds-rounds)
	w.checkRest()
}

// timeOutDead ends, when nothing else can happen, a transaction whose writer is gone. Nobody who opens a task that
// it is in the way of may have to wait for that, unless the instance is back in the group, but not its producer.
func (w *world) timeOutDead() bool {
	gone := func(x *txn) bool { return !x.proc.running() || x.proc.txn.epoch != x.producer.epoch }
	for _, pr := range w.producers {
		x := pr.txn
		if x == nil || x.state != ongoing || !gone(x) {
			continue
		}
		for _, p := range w.processes() {
			for i, wk := range p.work {
				opens := wk != nil && p.machine.Task(w.tasks[i].id).Phase == handover.Opening && !wk.fenced && p.txn.phase != txnClosed
				waits := x.begins[i] != none || slices.Contains(w.tasks[i].pending, x)
				if opens && waits && w.orphaned(pr) && pr.id != p.host.instance {
					w.fail("nobody waits for the dead", "%s opens %s and waits until the transaction of %s times out", p.name, w.tasks[i].id, x.proc.name)
				}
			}
		}
	}
	return w.timeOut(gone)
}

// actions are all the things that can happen without a fault, in random order.
func (w *world) actions() []func() bool {
	acts := []func() bool{func() bool { return w.completeJoin(false) }, w.expireDead, w.markSome}
	for _, p := range w.processes() {
		for _, act := range []func() bool{p.clientStep, p.leaveFormer, p.commitSome, p.leaveIfDone} {
			acts = append(acts, func() bool { return p.running() && act() })
		}
		for _, t := range w.tasks {
			acts = append(acts, func() bool { return p.running() && p.taskStep(t) })
		}
	}
	for _, c := range w.commits {
		acts = append(acts, func() bool { return w.deliver(c) })
	}
	w.rng.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	return acts
}

// beginQuiet ends all faults: paused processes go on, and what is down comes back or never does.
func (w *world) beginQuiet() {
	w.quiet = true
	w.note("-- no more faults --")
	for _, h := range w.hosts {
		switch {
		case h.proc != nil && h.proc.paused:
			w.hit(resume, h.proc)
		case h.proc == nil && !h.gone && w.chance(0.6):
			w.start(h)
		case h.proc == nil:
			h.gone = true
		}
	}
	if len(w.processes()) == 0 {
		w.start(w.newHost(""))
	}
	for _, p := range w.processes() {
		p.machine.SetStuck(nil)
		p.lies = false
		if w.unfenced {
			// A plan may still come from what was said falsely.
			p.machine.ForceRound()
			p.force = true
		}
	}
}

// checkRest demands, when nothing more happens:
//
//   - every process is a member under a lease of the present generation, and no round is wanted;
//   - every task runs on exactly one of them and has done and committed all of its input, each input counted
//     once, or at least once where that is all that is promised;
//   - no transaction is open;
//   - members that leave are gone if others stay, and each stateful task has its standbys;
//   - another round would change nothing (rule 7).
func (w *world) checkRest() {
	ps := w.processes()
	g := &w.group
	if len(ps) == 0 {
		return // all left
	}
	if g.state != stable || len(g.members) != len(ps) {
		w.fail("rest", "the group is %s with %d processes", g, len(ps))
		return
	}
	for _, pr := range w.producers {
		if pr.txn != nil {
			w.fail("rest", "the transaction of %s is still open", pr.txn.proc.name)
		}
	}
	staying := 0
	for _, p := range ps {
		if !w.leased(p) || p.join != inside || p.inbox != nil || p.force || w.exactly && p.txn.phase != txnOpen {
			w.fail("rest", "%s does not rest: %s", p.name, p)
		}
		if !p.machine.Leaving() {
			staying++
		}
	}
	for _, p := range ps {
		if p.machine.Leaving() && staying > 0 {
			w.fail("rest", "%s still leaves, though %d members stay", p.name, staying)
		}
	}
	for _, t := range w.tasks {
		w.checkTaskAtRest(t, ps, staying)
	}
	if w.violation == nil {
		w.checkFixpoint(ps)
	}
}

func (w *world) checkTaskAtRest(t *task, ps []*process, staying int) {
	runners, standbys := 0, 0
	for _, p := range ps {
		switch p.machine.Task(t.id).Phase {
		case handover.Running:
			runners++
		case handover.Standby:
			standbys++
		case handover.Idle, handover.Released:
		default:
			w.fail("rest", "task %s on %s is %s", t.id, p.name, p.machine.Task(t.id).Phase)
		}
	}
	if runners != 1 {
		w.fail("rest", "task %s runs on %d processes", t.id, runners)
		return
	}
	if want := min(w.policy.Standbys, staying-1); t.stateful && staying > 0 && standbys != want {
		w.fail("rest", "task %s has %d standbys of %d", t.id, standbys, want)
	}
	for i, n := range t.input {
		c := t.durable[i]
		good := c.below == n && c.applied >= n && (c.applied == n || t.mayDouble)
		if w.exactly {
			good = w.exact(c, n)
		}
		if t.committed[i] != n || !good {
			w.fail("rest", "task %s partition %d has %d inputs; committed %d, state %+v, may double: %v", t.id, i, n, t.committed[i], c, t.mayDouble)
		}
	}
}

// checkFixpoint plans once more from what the members would say now.
func (w *world) checkFixpoint(ps []*process) {
	in := assign.Input{Generation: w.group.gen + 1, Policy: w.policy}
	in.Tasks = w.assigned()
	for _, p := range ps {
		before := *p.machine // it takes a report for the beginning of a join
		in.Members = append(in.Members, assign.Member{ID: p.member, Report: p.report()})
		*p.machine = before
	}
	plan := assign.Assign(in)
	for i, p := range ps {
		mp, r := plan[p.member], in.Members[i].Report
		same := slices.Equal(mp.Own, r.Owned) && len(mp.Take)+len(mp.Release) == 0 &&
			slices.Equal(mp.Learn, copiedTasks(r.Learning)) && slices.Equal(mp.Standby, copiedTasks(r.Standby))
		if !same {
			w.fail("rule 7", "at rest %s does %s; another round says %s", p.name, p, planString(mp))
		}
	}
}

func copiedTasks(list []assign.Copy) []assign.TaskID {
	ids := make([]assign.TaskID, len(list))
	for i, c := range list {
		ids[i] = c.Task
	}
	return ids
}
