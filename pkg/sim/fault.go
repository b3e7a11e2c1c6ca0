package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// fault is something that happens to the group, wanted or not.
type fault uint8

const (
	startHost    fault = iota // a process starts where none runs
	addHost                   // another machine joins
	twin                      // a second process under an instance id that is in use
	crash                     // kill -9
	crashLeader               // the same, to the leader before its sync
	crashTaker                // the same, to one whose takeover its former owner has not heard of
	crashWaiter               // the same, to one that waits for a token
	crashWiped                // the same, and the disk is lost
	stopRelease               // SIGTERM: commit, leave the group
	stopKeep                  // SIGTERM: commit, stay in the group for a restart
	markLeaving               // leave
	cancelLeave               // leave --cancel
	giveUp                    // scale_down_timeout is over
	pause                     // SIGSTOP
	resume                    // SIGCONT
	expel                     // the session of a live process ends
	missRound                 // the rebalance timeout ends the join phase without some that live
	ownClock                  // a process believes that it lost the group
	loseJoin                  // the answer to a join is lost
	losePlan                  // the answer to a sync is lost
	loseCommit                // a commit is lost
	loseAnswer                // its answer is
	giveUpCommit              // the process waits no longer; the commit may still arrive
	failTask                  // the work on a task ends in an error
	lateJoin                  // a join that was thought to be lost arrives
	lie                       // the next report is garbled
	forgetGroup               // the coordinator loses the group, not its offsets
	timeOut                   // a transaction takes too long
	fenced                    // an old InitProducerID arrives
	numFaults
)

var faultNames = [numFaults]string{
	"start", "add host", "twin", "crash", "crash of the leader", "crash of a taker", "crash of a waiting taker", "crash with disk lost", "stop and leave", "stop and stay",
	"leave", "cancel", "timeout", "pause", "resume", "expel", "missed round", "own clock", "lost join", "lost plan", "lost commit",
	"lost answer", "answer given up", "task failure", "late join", "lie", "group forgotten", "transaction timeout", "fenced",
}

// faultMix is how often each kind happens in a history, relative to the others.
type faultMix [numFaults]int

// drawFaults picks the kinds of one history: most have some kinds only, so that these are dense.
func (w *world) drawFaults() {
	often := [numFaults]int{
		startHost: 10, addHost: 2, twin: 1, crash: 4, crashLeader: 3, crashTaker: 10, crashWaiter: 2, crashWiped: 2, stopRelease: 2, stopKeep: 2, markLeaving: 6,
		cancelLeave: 2, giveUp: 1, pause: 4, resume: 6, expel: 4, missRound: 6, ownClock: 2, loseJoin: 4, losePlan: 6, loseCommit: 4,
		loseAnswer: 6, giveUpCommit: 6, failTask: 4, lateJoin: 1, lie: 1, forgetGroup: 1,
		timeOut: 3, fenced: 2,
	}
	if w.dense {
		w.faults = faultMix{
			startHost: 14, markLeaving: 12, cancelLeave: 10, crash: 4, crashTaker: 40, crashWaiter: 3, pause: 4, resume: 8, losePlan: 6, loseAnswer: 20, giveUpCommit: 12,
			missRound: 8, expel: 3, failTask: 1, timeOut: 2,
		}
		return
	}
	keep := []float64{0.15, 0.5, 1}[w.rng.IntN(3)]
	for f := range numFaults {
		switch {
		case f == startHost || f == resume || f == markLeaving || f == addHost:
			w.faults[f] = often[f]
		case f == lateJoin || f == lie || f == forgetGroup || f == twin:
			if w.chance(0.06) {
				w.faults[f] = 3
			}
		case w.chance(keep):
			w.faults[f] = often[f]
		}
	}
}

// strike lets one fault happen, if the one that is drawn can.
func (w *world) strike() {
	w.stick()
	total := 0
	for _, n := range w.faults {
		total += n
	}
	n := w.rng.IntN(total)
	for f, often := range w.faults {
		if n -= often; n < 0 {
			if w.happen(fault(f)) {
				w.result.Faults[faultNames[f]]++
			}
			return
		}
	}
}

// happen reports whether the fault could happen.
func (w *world) happen(f fault) bool {
	switch f {
	case startHost:
		h := w.anyHost(func(h *host) bool { return h.proc == nil && !h.gone })
		if h == nil {
			return false
		}
		w.start(h)
	case addHost:
		if len(w.hosts) >= maxHosts {
			return false
		}
		w.start(w.newHost(""))
	case lateJoin:
		return w.arriveLate()
	case loseCommit, loseAnswer, giveUpCommit:
		return w.disturbCommit(f)
	case missRound:
		return w.completeJoin(true)
	case timeOut:
		return w.timeOut(func(x *txn) bool { return !x.proc.running() || w.chance(0.3) })
	case fenced:
		if len(w.producers) == 0 {
			return false
		}
		pr := w.producers[w.rng.IntN(len(w.producers))]
		w.fence(pr)
		w.note("an old producer of %s starts", pr.id)
	case forgetGroup:
		if w.group.state != stable {
			return false
		}
		w.note("the coordinator loses the group")
		for _, m := range w.group.members {
			w.expelled(m, "the group is lost")
		}
		w.group = group{}
	default:
		p := w.anyProcess(func(p *process) bool { return f.canHit(p) })
		return p != nil && w.hit(f, p)
	}
	return true
}

// canHit says whether the fault makes sense for the process.
func (f fault) canHit(p *process) bool {
	w := p.world
	switch f {
	case twin:
		return len(w.hosts) < maxHosts
	case crashLeader:
		return w.group.state == completing && w.group.leader == p.member
	case crashTaker:
		return slices.ContainsFunc(w.tasks, func(t *task) bool { return p.justTook(t) })
	case crashWaiter:
		return slices.ContainsFunc(w.tasks, func(t *task) bool { return p.machine.Task(t.id).Phase == handover.Taking })
	case stopRelease, stopKeep, pause:
		return !p.paused
	case markLeaving:
		// Mostly somebody stays.
		stays := func(o *process) bool { return o != p && !o.machine.Leaving() }
		return !p.machine.Leaving() && !p.paused && (slices.ContainsFunc(w.processes(), stays) || w.chance(0.1))
	case cancelLeave, giveUp:
		return p.machine.Leaving() && !p.paused
	case resume:
		return p.paused
	case expel:
		m := w.group.find(p.member)
		return m != nil && !m.joined
	case ownClock:
		_, ok := p.machine.Lease()
		return ok && !p.paused
	case loseJoin:
		return p.join == joining && !p.paused
	case losePlan:
		return p.join == syncing && w.group.state == stable && !p.paused
	case failTask, lie:
		return !p.paused
	default:
		return true
	}
}

// justTook says whether the process runs a task whose former owner does not know yet that its release was
// written.
func (p *process) justTook(t *task) bool {
	r := p.runs[t.index]
	if r == nil || r.stopped || p.machine.Task(t.id).Release == (assign.ReleaseID{}) || slices.Equal(r.pos, r.acked) && p.world.chance(0.8) {
		return false
	}
	return slices.ContainsFunc(p.world.processes(), func(o *process) bool { return o != p && o.machine.Task(t.id).Phase.InRelease() })
}

func (w *world) hit(f fault, p *process) bool {
	switch f {
	case twin:
		w.start(w.newHost(p.host.instance))
	case crash, crashLeader, crashTaker, crashWaiter, crashWiped:
		w.crash(p, f == crashWiped)
	case stopRelease, giveUp:
		w.note("%s stops: %s", p.name, p)
		p.exit(true)
		p.host.gone = f == giveUp
	case stopKeep:
		w.note("%s stops and stays a member", p.name)
		p.exit(false)
	case markLeaving, cancelLeave:
		p.host.leaving = f == markLeaving
		deadline := int64(0)
		if f == markLeaving && w.chance(0.3) {
			deadline = 1_000_000 + w.clock
		}
		p.machine.SetLeaving(f == markLeaving, deadline)
		w.note("%s is marked as leaving: %v", p.name, f == markLeaving)
	case pause, resume:
		p.paused = f == pause
		w.note("%s paused: %v", p.name, p.paused)
		if f == resume && !w.known(p) && w.chance(0.5) {
			w.note("%s: its own clock says that the session is over", p.name)
			p.lost()
		}
	case expel:
		m := w.group.find(p.member)
		w.group.remove(m)
		w.expelled(m, "its session ends")
	case ownClock:
		w.note("%s believes that it lost the group", p.name)
		p.lost()
	case loseJoin:
		if m := w.group.find(p.member); m != nil {
			m.answered = false
		}
		p.join = outside
		w.note("%s never hears of its join", p.name)
	case losePlan:
		if m := w.group.find(p.member); m != nil {
			p.lastPlan = m.plan
		}
		p.join = outside
		w.note("%s never hears of its plan", p.name)
	case failTask:
		return w.failTask(p)
	case lie:
		p.lies = true
	default:
		return false
	}
	return true
}

func (w *world) crash(p *process, wiped bool) {
	p.end()
	if wiped {
		p.host.disk = make([]*store, len(w.tasks))
		p.host.former, p.host.leaving = "", false
	}
	w.note("%s crashes, disk lost: %v", p.name, wiped)
}

func (w *world) failTask(p *process) bool {
	t := w.tasks[w.rng.IntN(len(w.tasks))]
	st := p.machine.Task(t.id)
	if st.Phase == handover.Idle || st.Phase == handover.Released {
		return false
	}
	p.machine.Failed(t.id, st.Epoch)
	p.drop(t)
	if w.chance(0.3) && (st.Phase == handover.Learning || st.Phase == handover.Standby) {
		p.stores[t.index] = nil // corrupt: set aside
	}
	p.reconcile()
	w.note("%s fails while %s: %s", t.id, st.Phase, p)
	return true
}

func (w *world) disturbCommit(f fault) bool {
	if len(w.commits) == 0 {
		return false
	}
	c := w.commits[w.rng.IntN(len(w.commits))]
	if i := slices.IndexFunc(w.commits, func(c *commit) bool { return c.release }); i >= 0 && w.chance(0.5) {
		c = w.commits[i]
	}
	switch {
	case f == loseCommit && !c.arrived:
		c.dropped = true
		w.note("%s is lost", c)
	case f == loseAnswer && !c.arrived && c.waiting && !c.proc.paused:
		w.arrive(c)
		c.proc.unanswered(c)
		w.forget(c)
	case f == giveUpCommit && c.waiting && !c.proc.paused:
		c.proc.unanswered(c)
	default:
		return false
	}
	return true
}

// oldJoin is a join request that was sent once.
type oldJoin struct {
	member string
	report assign.Report
}

// arriveLate lets the coordinator see an old join of a member that has joined again since.
func (w *world) arriveLate() bool {
	if len(w.oldJoins) == 0 {
		return false
	}
	j := w.oldJoins[len(w.oldJoins)-1-w.rng.IntN(min(8, len(w.oldJoins)))]
	m := w.group.find(j.member)
	if m == nil || m.proc.join != inside {
		return false
	}
	w.unfenced = true
	w.group.join(m, j.report, false)
	w.note("an old join of %s arrives (%s): %s", m.id, reportString(j.report), &w.group)
	return true
}

func (w *world) anyHost(ok func(*host) bool) *host {
	for _, i := range w.rng.Perm(len(w.hosts)) {
		if ok(w.hosts[i]) {
			return w.hosts[i]
		}
	}
	return nil
}

func (w *world) anyProcess(ok func(*process) bool) *process {
	h := w.anyHost(func(h *host) bool { return h.proc != nil && ok(h.proc) })
	if h == nil {
		return nil
	}
	return h.proc
}
