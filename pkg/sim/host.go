package sim

import (
	"fmt"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// maxHosts bounds the hosts of a history.
const maxHosts = 6

// host is a machine with a state directory. One process at most runs on it.
type host struct {
	name     string
	instance string // the instance id; a twin has that of another host
	capacity uint32
	rack     string
	pace     float64 // how often its process gets its turn
	proc     *process
	gone     bool // nothing is started here again

	// The state directory.
	disk        []*store // per task: what survives a crash
	former      string   // member id of the last process
	incarnation assign.Incarnation
	leaving     bool // a draining instance restarts under its incarnation
	starts      int
}

// process is one run of the program: the real machine, the membership client and the work on its tasks.
type process struct {
	world       *world
	host        *host
	name        string
	incarnation assign.Incarnation
	machine     *handover.Machine
	paused      bool // SIGSTOP

	// The membership client.
	member   string
	join     joinState
	joinGen  int32 // of the last join's answer
	force    bool  // a round is wanted
	overdue  bool  // PlanBeforeReport is broken: the inbox holds a plan older than the last join
	inbox    *inbox
	lastPlan assign.MemberPlan // the last plan that was sent to it, acted on or not
	lies     bool              // the next report is garbled

	// The work, per task.
	runs     []*run    // open to process, or stopped for a release
	work     []*work   // fetches and restores under way
	stores   []*store  // copies
	opening  [][]int64 // the committed offsets that a task was opened at, or that were found when it was told to release
	txn      transaction
	checks   []int  // learner's checks within the acceptable lag, in a row
	caughtUp []bool // kept by the checker: the learner was within the acceptable lag once
	silent   handover.Lease
}

// inbox is a plan that was received and not yet adopted.
type inbox struct {
	lease handover.Lease
	plan  assign.MemberPlan
}

func (p *process) running() bool { return p.host.proc == p }

func (w *world) newHost(instance string) *host {
	h := &host{name: fmt.Sprintf("h%d", len(w.hosts)+1), rack: w.rack(), capacity: uint32(w.rng.IntN(3)), disk: make([]*store, len(w.tasks))}
	h.pace = []float64{0.15, 1, 1}[w.rng.IntN(3)]
	h.instance = instance
	if instance == "" {
		h.instance = "i-" + h.name
	}
	w.hosts = append(w.hosts, h)
	return h
}

// start runs a process on the host.
func (w *world) start(h *host) {
	h.starts++
	w.clock++
	n := len(w.tasks)
	p := &process{
		world: w, host: h, name: fmt.Sprintf("%s.%d", h.name, h.starts), machine: handover.New(),
		runs: make([]*run, n), work: make([]*work, n), stores: make([]*store, n), opening: make([][]int64, n),
		checks: make([]int, n), caughtUp: make([]bool, n),
	}
	p.machine.Stable, p.machine.Racks = w.stable, w.racks
	if h.leaving {
		h.incarnation.Starts++
		p.machine.SetLeaving(true, 0)
	} else {
		h.incarnation = assign.Incarnation{StartMs: w.clock, Random: w.rng.Uint64()}
	}
	p.incarnation = h.incarnation
	for i, s := range h.disk {
		if s != nil {
			p.stores[i] = s.clone()
		}
	}
	h.proc = p
	w.note("%s starts (instance %s, former member %q)", p.name, h.instance, h.former)
}

// end ends the process at once. What it wrote to disk stays.
func (p *process) end() {
	for _, r := range p.runs {
		if r != nil {
			r.mayDouble()
		}
	}
	if p.member != "" {
		p.host.former = p.member
	}
	p.host.proc = nil
}

// syncDisk makes what the process's copies hold durable.
func (p *process) syncDisk() {
	for i, s := range p.stores {
		if s != nil {
			p.host.disk[i] = s.clone()
		}
	}
}

// exit ends the process in good order: it commits what it may, and leaves the group if told so.
func (p *process) exit(leave bool) {
	w := p.world
	if w.exactly {
		p.lastTransaction()
	}
	for _, t := range w.tasks {
		r := p.runs[t.index]
		if w.exactly || r == nil || !p.machine.MayCommit(t.id) || r.inflight != nil || !r.hasNews() || !p.flush(t) {
			continue
		}
		l, _ := p.machine.Lease()
		c := &commit{proc: p, lease: l, parts: []commitPart{p.part(t, p.machine.Metadata(t.id), 0)}}
		w.arrive(c)
		p.answer(c)
	}
	p.syncDisk()
	p.end()
	if leave {
		p.host.former = ""
		if m := w.group.find(p.member); m != nil {
			w.group.remove(m)
		}
	}
	w.note("%s exits, leaves the group: %v: %s", p.name, leave, &w.group)
}

// leave ends a drained process, or one that a later incarnation replaces.
func (p *process) leaveIfDone() bool {
	switch {
	case p.inbox != nil:
		return false
	case p.machine.Superseded():
		p.world.note("%s is superseded", p.name)
	case p.machine.Drained():
		p.world.note("%s is drained", p.name)
	default:
		return false
	}
	p.exit(true)
	p.host.leaving = false
	p.host.gone = p.world.quiet || p.world.chance(0.3)
	return true
}
