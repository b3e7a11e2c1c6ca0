package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// acceptableLag is how many changelog records a ready learner may be behind.
const acceptableLag = 2

// world is one history: Kafka, the hosts and what runs on them, and messages under way.
type world struct {
	rng   *rand.Rand
	opt   Options
	quiet bool // no more faults
	// exactly: the processes promise exactly once. newEpochs: each transaction has an epoch of its own, as of
	// transaction version 2.
	exactly   bool
	newEpochs bool
	tasks     []*task
	policy    assign.Policy
	stable    bool // learners' mode

	// In some histories hosts are in racks, and copies get stuck for a while.
	racks  bool
	places *rand.Rand

	group     group
	memberNo  []int // member ids to come, shuffled so that age and order of ids are independent
	hosts     []*host
	commits   []*commit
	commitNo  int // of the last request that was accepted
	producers []*producer
	oldJoins  []oldJoin
	faults    faultMix
	dense     bool    // few tasks and hosts, faults where they matter
	haste     float64 // how much rounds get on, compared with tasks
	faultRate float64 // how often a step is a fault
	deafness  float64 // how often the answer to a commit is lost, beside the faults
	clock     int64

	// unfenced: somebody lied or an old join came late in this history. Members then believe leases
	// that their group has given to others, until they hear of it.
	unfenced bool

	step      int
	result    Result
	violation *Violation
	trace     []string
}

func newWorld(seed uint64, opt Options) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x5eed)), places: rand.New(rand.NewPCG(seed, 0x7ac4)), opt: opt}
	w.racks = w.places.IntN(3) == 0
	w.result = Result{Seed: seed, Faults: map[string]int{}}
	// A third of the histories is small and has handovers over and over, disturbed where it matters.
	w.dense = w.chance(0.33)
	w.faultRate = []float64{0.02, 0.04, 0.08}[w.rng.IntN(3)]
	w.haste = []float64{0.2, 0.4, 0.6}[w.rng.IntN(3)]
	tasks, hosts := 1+w.rng.IntN(5), 2+w.rng.IntN(3)
	if w.dense {
		w.deafness = []float64{0, 0.1, 0.3}[w.rng.IntN(3)]
		tasks, hosts = 1+w.rng.IntN(2), 2+w.rng.IntN(3)
	}
	for i := range tasks {
		// Subtopology 1 reads two or three topics, so that its tasks have as many partitions; 2 is stateless.
		sub := int32(w.rng.IntN(3))
		parts := 1
		if sub == 1 {
			parts = 2 + w.rng.IntN(2)
		}
		w.tasks = append(w.tasks, newTask(i, assign.TaskID{Subtopology: sub, Partition: int32(i)}, sub != 2, parts))
	}
	if w.chance(0.2) {
		// A group of plain consumers is being upgraded: its offsets are good, its metadata is not ours.
		for _, t := range w.tasks {
			t.metadata, t.committed, t.decided = "written by somebody else", make([]int64, len(t.input)), make([]int64, len(t.input))
		}
	}
	w.policy = assign.Policy{BalancingFactor: 2 + w.rng.IntN(2), MaxLearners: w.rng.IntN(3), Standbys: max(0, w.rng.IntN(4)-2)}
	w.stable = w.chance(0.3)
	w.memberNo = w.rng.Perm(1000)
	w.exactly, w.newEpochs = w.chance(0.5), w.chance(0.5)
	if opt.Broken != None {
		w.exactly = opt.Broken.exactlyOnce()
	}
	if w.exactly {
		w.result.ExactlyOnce = 1
	}
	for range hosts {
		w.newHost("")
	}
	return w
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	if w.opt.Trace {
		w.trace = append(w.trace, fmt.Sprintf("%4d  ", w.step)+fmt.Sprintf(format, args...))
	}
}

// fail records the first violation.
func (w *world) fail(demand, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{Seed: w.result.Seed, Step: w.step, Demand: demand, What: fmt.Sprintf(format, args...)}
		w.note("VIOLATION of %q: %s", demand, w.violation.What)
	}
}

func (w *world) breaks(r Rule) bool { return w.opt.Broken == r }

// processes are those that run, paused ones included.
func (w *world) processes() []*process {
	var ps []*process
	for _, h := range w.hosts {
		if h.proc != nil {
			ps = append(ps, h.proc)
		}
	}
	return ps
}

// known says whether the process is a member of the group.
func (w *world) known(p *process) bool {
	return p.member != "" && w.group.find(p.member) != nil
}

// leased says whether the coordinator would accept the process's lease.
func (w *world) leased(p *process) bool {
	l, ok := p.machine.Lease()
	return ok && l.Generation == w.group.gen && w.group.find(l.Member) != nil
}

// mayAppend says whether the process still writes to changelogs. Its own clock tells a process that was
// removed to stop; in an unfenced history only a good lease will do.
func (w *world) mayAppend(p *process) bool {
	return w.known(p) && (!w.unfenced || w.leased(p))
}

// produce adds input.
func (w *world) produce() {
	t := w.tasks[w.rng.IntN(len(w.tasks))]
	t.input[w.rng.IntN(len(t.input))] += int64(1 + w.rng.IntN(3))
}

// completeJoin ends the join phase when all have joined, or only dead members have not, whose sessions end.
// Forced, it does so as the rebalance timeout does.
func (w *world) completeJoin(forced bool) bool {
	g := &w.group
	if g.state != preparing {
		return false
	}
	missing, alive, joined := 0, 0, 0
	for _, m := range g.members {
		switch {
		case m.joined:
			joined++
		case m.proc.running() && m.proc.member == m.id:
			alive++
			missing++
		default:
			missing++
		}
	}
	if (alive > 0) != forced || joined == 0 {
		return false
	}
	for _, m := range g.complete(w.rng.IntN) {
		w.expelled(m, "missed the round")
	}
	w.result.Rounds++
	w.note("join phase ends: %s", g)
	return true
}

// expireDead ends the session of a member whose process is gone. One that waits in the join phase has none.
func (w *world) expireDead() bool {
	for _, i := range w.rng.Perm(len(w.group.members)) {
		m := w.group.members[i]
		if !m.joined && !(m.proc.running() && m.proc.member == m.id) {
			w.group.remove(m)
			w.note("session of %s (gone) ends: %s", m.id, &w.group)
			return true
		}
	}
	return false
}

// expelled notes that the group removed a live member: flushed work may be done again by others.
func (w *world) expelled(m *member, why string) {
	w.note("%s of %s is removed: %s", m.id, m.proc.name, why)
	for _, r := range m.proc.runs {
		if r != nil {
			r.mayDouble()
		}
	}
}

// assigned are the tasks as the assignor knows them.
func (w *world) assigned() (tasks []assign.Task) {
	for _, t := range w.tasks {
		k := assign.Task{ID: t.id, Stateful: t.stateful}
		if w.racks {
			k.Racks = [][]string{nil, {"a"}, {"b"}, {"a", "b"}}[t.index%4]
		}
		tasks = append(tasks, k)
	}
	return tasks
}

// rack is where a new host is.
func (w *world) rack() string {
	if !w.racks {
		return ""
	}
	return []string{"a", "b"}[w.places.IntN(2)]
}

// stick lets copies get stuck, or come on again, as their process sees it.
func (w *world) stick() {
	for _, p := range w.processes() {
		if !w.racks || p.paused || w.places.IntN(10) > 0 {
			continue
		}
		var stuck []assign.TaskID
		for _, t := range w.tasks {
			if w.places.IntN(3) == 0 {
				stuck = append(stuck, t.id)
			}
		}
		p.machine.SetStuck(stuck)
	}
}

// lead makes the plan of the round, as the leader does at its sync.
func (w *world) lead() {
	in := assign.Input{Generation: w.group.gen, Policy: w.policy}
	in.Tasks = w.assigned()
	for _, m := range w.group.members {
		in.Members = append(in.Members, assign.Member{ID: m.id, Report: m.report})
	}
	w.rng.Shuffle(len(in.Members), func(i, j int) { in.Members[i], in.Members[j] = in.Members[j], in.Members[i] })
	plan := assign.Assign(in)
	w.checkOrderOfMembers(in, plan)
	if w.chance(0.1) {
		w.checkLies(in)
	}
	if w.breaks(IdentityKept) {
		for _, mp := range plan {
			for _, list := range [][]assign.Handover{mp.Release, mp.Take} {
				for i := range list {
					list[i].Release.Generation = w.group.gen
				}
			}
		}
	}
	w.checkPlan(plan)
	for _, m := range w.group.members {
		m.plan = plan[m.id]
	}
	w.group.state = stable
}

// taskOf finds a task by id.
func (w *world) taskOf(id assign.TaskID) *task {
	i := slices.IndexFunc(w.tasks, func(t *task) bool { return t.id == id })
	return w.tasks[i]
}
