package assign

import (
	"slices"
	"strings"
)

// none stands for no member.
const none int32 = -1

// Bounds that keep the exact comparison of loads within 64 bits.
const (
	maxCapacity = 1 << 20
	maxFactor   = 1 << 20
)

// group is a round in the making. Members and tasks are addressed by index: members in order of id, so
// that the lower index wins ties, tasks in order of id.
type group struct {
	generation int32
	policy     Policy
	members    []member
	staying    []int32 // members that may be given something new
	tasks      []task

	copies    []copied // in order of task, then member
	copyStart []int32  // per task: its first entry in copies; one more at the end

	classes   int      // how many classes of tasks there are
	rackCount int      // how many racks the members are in
	rackSets  [][]bool // per set of racks that have the input of a task: which racks are in it

	stuck map[stuckCopy]bool

	loads
	moves []int32 // tasks planned to leave their home, in the order in which they may start
}

type member struct {
	id         string
	stays      bool // neither leaving nor superseded
	superseded bool
	capacity   int64
	rack       int32
}

type task struct {
	id       TaskID
	stateful bool
	class    int32 // the same for tasks of one subtopology
	racks    int32 // set of racks that have its input, counted from 1; 0: not known

	// The settled claims.
	owner     int32
	taker     int32
	releasing bool      // how the owner claims it
	release   ReleaseID // if releasing

	// home is the member that runs the task, or will once from, if any, has released it.
	home, from int32
	fresh      bool // the home was chosen now, and nobody has any state

	learner int32 // the learner at work on a member that stays, while there is a reason for it
	dest    int32 // target: where the task should end
	next    mode  // what the step does about a dest that is not home
}

// owned reports whether the home has the task now. Only then can it release it: a member that is about to
// become the owner must have opened the task first.
func (t *task) owned() bool {
	return t.owner != none && t.owner == t.home
}

// mode is how far a move has come.
type mode uint8

const (
	wait mode = iota // no room for another learner at the destination, or a handover under way has to end first
	learn
	handover
)

// kind orders copies as they are preferred when nothing else tells them apart.
type kind uint8

const (
	learning kind = iota
	standby
	local
)

type copied struct {
	task, member int32
	kind         kind
	ready        bool
	position     int64
}

// settle reads the reports: who stays, who holds which task, and which copies there are.
func settle(in Input) *group {
	g := &group{generation: in.Generation, policy: in.Policy}
	g.policy.BalancingFactor = min(max(g.policy.BalancingFactor, 2), maxFactor)
	g.tasks = sortedTasks(in.Tasks)
	reports := sortedMembers(in.Members)
	latest := latestIncarnations(reports)
	g.members = make([]member, len(reports))
	for i, r := range reports {
		m := member{id: r.ID, capacity: min(max(int64(r.Capacity), 1), maxCapacity)}
		m.superseded = r.Instance != "" && latest[r.Instance] != r
		m.stays = !r.Leaving && !m.superseded
		g.members[i] = m
		if m.stays {
			g.staying = append(g.staying, int32(i))
		}
	}
	g.classes = classify(g.tasks)
	g.indexRacks(reports, in.Tasks)
	g.initLoads()
	g.claims(reports)
	for t := range g.tasks {
		g.settleHome(&g.tasks[t])
		g.tasks[t].learner = g.settleLearner(int32(t))
	}
	if g.policy.MaxLearners > 0 {
		g.boundLearners()
	}
	return g
}

func sortedTasks(in []Task) []task {
	tasks := make([]task, 0, len(in))
	for _, t := range in {
		tasks = append(tasks, task{id: t.ID, stateful: t.Stateful, owner: none, taker: none})
	}
	// Of a task listed twice, as stateful and stateless, the stateful entry is the safe one to keep.
	slices.SortFunc(tasks, func(a, b task) int {
		if c := a.id.Compare(b.id); c != 0 || a.stateful == b.stateful {
			return c
		} else if a.stateful {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(tasks, func(a, b task) bool { return a.id == b.id })
}

func sortedMembers(in []Member) []*Member {
	members := make([]*Member, len(in))
	for i := range in {
		members[i] = &in[i]
	}
	slices.SortStableFunc(members, func(a, b *Member) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(members, func(a, b *Member) bool { return a.ID == b.ID })
}

// latestIncarnations finds, for each instance id, the member that keeps it: a former self that has not
// noticed, or a second process configured with the same id, has to exit.
func latestIncarnations(members []*Member) map[string]*Member {
	latest := make(map[string]*Member, len(members))
	for _, m := range members {
		if o := latest[m.Instance]; o == nil || m.Incarnation.Compare(o.Incarnation) > 0 {
			latest[m.Instance] = m
		}
	}
	return latest
}

// taskIndex finds tasks by id.
func taskIndex(tasks []task) map[TaskID]int32 {
	index := make(map[TaskID]int32, len(tasks))
	for t := range tasks {
		index[tasks[t].id] = int32(t)
	}
	return index
}

// claims gives each task its owner and its taker, and collects the copies.
func (g *group) claims(reports []*Member) {
	index := taskIndex(g.tasks)
	unsorted := make([]copied, 0, len(g.tasks))
	mine := make([]int32, len(g.tasks)) // per task: one past this member's learner or standby in unsorted
	for i, r := range reports {
		m, first := int32(i), int32(len(unsorted))
		for _, id := range r.Owned {
			if t, ok := index[id]; ok {
				g.tasks[t].claimOwned(m)
			}
		}
		for _, h := range r.Releasing {
			if t, ok := index[h.Task]; ok {
				g.tasks[t].claimReleasing(m, h.Release)
			}
		}
		collect := func(k kind, list []Copy) {
			for _, c := range list {
				if t, ok := index[c.Task]; ok && g.tasks[t].stateful {
					unsorted = append(unsorted, copied{task: t, member: m, kind: k, position: c.Position})
					if k != local && mine[t] <= first {
						mine[t] = int32(len(unsorted))
					}
				}
			}
		}
		collect(learning, r.Learning)
		collect(standby, r.Standby)
		collect(local, r.Local)
		for _, id := range r.Ready {
			if t, ok := index[id]; ok && mine[t] > first {
				unsorted[mine[t]-1].ready = true
			}
		}
	}
	g.takers(reports, index)
	g.sortCopies(unsorted)
	g.stick(reports, index)
}

// claimOwned: owned beats releasing, and of two owners, which correct members never make, the lower
// member id stays.
func (t *task) claimOwned(m int32) {
	if t.owner == none || t.releasing {
		t.owner, t.releasing, t.release = m, false, ReleaseID{}
	}
}

// claimReleasing: of two, the newer order counts, then the lower member id.
func (t *task) claimReleasing(m int32, id ReleaseID) {
	if t.owner == none || t.releasing && id.Generation > t.release.Generation {
		t.owner, t.releasing, t.release = m, true, id
	}
}

// takers finds who was told to take each task: the newest order counts, then the lower member id.
func (g *group) takers(reports []*Member, index map[TaskID]int32) {
	newest := make([]int32, len(g.tasks))
	for i, r := range reports {
		for _, h := range r.Taking {
			t, ok := index[h.Task]
			if !ok || g.tasks[t].owner == int32(i) {
				continue
			}
			if g.tasks[t].taker == none || h.Release.Generation > newest[t] {
				g.tasks[t].taker, newest[t] = int32(i), h.Release.Generation
			}
		}
	}
}

// sortCopies orders copies by task; those of one task stay in order of member.
func (g *group) sortCopies(unsorted []copied) {
	g.copyStart = make([]int32, len(g.tasks)+1)
	for _, c := range unsorted {
		g.copyStart[c.task+1]++
	}
	for t := range g.tasks {
		g.copyStart[t+1] += g.copyStart[t]
	}
	next := slices.Clone(g.copyStart)
	g.copies = make([]copied, len(unsorted))
	for _, c := range unsorted {
		g.copies[next[c.task]] = c
		next[c.task]++
	}
}

func (g *group) copiesOf(t int32) []copied {
	return g.copies[g.copyStart[t]:g.copyStart[t+1]]
}

// settleHome says where a claimed task is, or will be once a handover under way has ended. A handover
// goes on while its owner is releasing, whatever became of its reason: the taker may have seen the
// token since it reported. It is ordered anew if the owner never heard of it.
func (g *group) settleHome(t *task) {
	t.home, t.from = t.owner, none
	switch {
	case t.taker == none:
	case t.owner == none:
		t.home = t.taker
	case t.releasing || g.members[t.taker].stays:
		t.home, t.from = t.taker, t.owner
	}
}

// settleLearner picks the one learner that a task keeps: ready ones first, then the lower member id. A
// learner on a member that does not stay is of no more use, nor is one that is stuck.
func (g *group) settleLearner(t int32) int32 {
	found, ready := none, false
	for _, c := range g.copiesOf(t) {
		if c.kind == learning && c.member != g.tasks[t].home && c.member != g.tasks[t].from && g.members[c.member].stays &&
			!g.shuns(t, c.member) && (found == none || c.ready && !ready) {
			found, ready = c.member, c.ready
		}
	}
	return found
}

// boundLearners drops learners beyond max_learners, as a lower setting leaves some. One that can take its
// task over in this round is no longer at work.
func (g *group) boundLearners() {
	atWork := make([]int, len(g.members))
	for t := len(g.tasks) - 1; t >= 0; t-- {
		k := &g.tasks[t]
		if k.learner == none || k.owned() && g.readyAt(int32(t), k.learner) {
			continue
		}
		if atWork[k.learner]++; atWork[k.learner] > g.policy.MaxLearners {
			k.learner = none
		}
	}
}
