package assign

import "slices"

// loads are the positions planned so far, and who has the fewest. Members of one rack are ranked together: a group
// that knows no racks has one ranking.
type loads struct {
	of    []int64    // per member: planned positions
	count [][]int64  // per class of tasks and member: planned positions of that class
	racks []*ranking // per rack

	ranked  int32      // the class by which byClass ranks; none: by none yet
	byClass []*ranking // per rack

	total    int64 // positions that the members that stay will have in the end
	capacity int64 // of these members
}

// classify numbers the classes of tasks that are spread evenly, each by itself: those of one subtopology, stateful and
// stateless ones apart. It returns how many there are.
func classify(tasks []task) int {
	type class struct {
		subtopology int32
		stateful    bool
	}
	index := make(map[class]int32)
	for t := range tasks {
		k := &tasks[t]
		c := class{k.id.Subtopology, k.stateful}
		n, known := index[c]
		if !known {
			n = int32(len(index))
			index[c] = n
		}
		k.class = n
	}
	return len(index)
}

// initLoads ranks the members that stay. Racks and classes are known by then.
func (g *group) initLoads() {
	n := len(g.members)
	g.loads = loads{of: make([]int64, n), count: make([][]int64, g.classes), ranked: none}
	counts := make([]int64, n*g.classes)
	for c := range g.count {
		g.count[c] = counts[c*n : (c+1)*n]
	}
	inRack := make([][]int32, g.rackCount)
	for _, m := range g.staying {
		inRack[g.members[m].rack] = append(inRack[g.members[m].rack], m)
		g.capacity += g.members[m].capacity
	}
	at := nowhere(n)
	for _, members := range inRack {
		g.racks = append(g.racks, newRanking(members, at, g.lighter))
	}
}

func (g *group) clearLoads() {
	clear(g.of)
	for _, count := range g.count {
		clear(count)
	}
	for _, r := range g.racks {
		r.reset()
	}
	g.ranked = none
}

// put changes how many positions of the task's class are planned for m, if that is a member.
func (g *group) put(t, m int32, n int64) {
	if m != none {
		g.count[g.tasks[t].class][m] += n
		g.weigh(m, n)
	}
}

// weigh changes the load of m alone.
func (g *group) weigh(m int32, n int64) {
	g.of[m] += n
	rack := g.members[m].rack
	g.racks[rack].fix(m)
	if g.ranked != none {
		g.byClass[rack].fix(m)
	}
}

// shift plans the task to end on the member to instead of from.
func (g *group) shift(t, from, to int32) {
	g.put(t, from, -1)
	g.put(t, to, 1)
	g.tasks[t].dest = to
}

// less reports whether member a is less loaded than member b: planned positions by capacity, compared
// exactly.
func (g *group) less(a, b int32) bool { return g.lessOf(g.of, a, b) }

// lighter is less, the lower index first of those that are equal.
func (g *group) lighter(a, b int32) bool {
	x, y := g.of[a]*g.members[b].capacity, g.of[b]*g.members[a].capacity
	return x < y || x == y && a < b
}

func (g *group) lessOf(of []int64, a, b int32) bool {
	return of[a]*g.members[b].capacity < of[b]*g.members[a].capacity
}

// apart reports whether the load of high less that of low, taken with planned positions added to each,
// is at least the balancing factor. As the factor is two or more, and one position adds at most one to a
// load, a move from high to low then leaves low below what high was before.
func (g *group) apart(high int32, addHigh int64, low int32, addLow int64) bool {
	return g.apartOf(g.of, high, addHigh, low, addLow)
}

func (g *group) apartOf(of []int64, high int32, addHigh int64, low int32, addLow int64) bool {
	ch, cl := g.members[high].capacity, g.members[low].capacity
	return (of[high]+addHigh)*cl-(of[low]+addLow)*ch >= int64(g.policy.BalancingFactor)*ch*cl
}

// leastLoaded is where a task goes for which no member that stays has state. With several classes of tasks it is the member
// with the fewest of the task's class among those that have less than their share of all, so that no other task has to move
// to even the classes.
func (g *group) leastLoaded(t int32) int32 {
	best := none
	if g.classes > 1 {
		below := func(m int32) bool { return g.of[m]*g.capacity < g.total*g.members[m].capacity && !g.shuns(t, m) }
		best = g.best(g.rankClass(g.tasks[t].class), below, g.fewer, g.fits(t))
	}
	if best == none {
		best = g.lightest(g.welcome(t), g.fits(t))
	}
	return best
}

// lightest is the best of the least loaded members that stay and are allowed to be chosen, none if there are none.
func (g *group) lightest(allowed func(m int32) bool, fits compareRacks) int32 {
	return g.best(g.racks, allowed, g.less, fits)
}

// best is the best of the members that are allowed to be chosen, in rankings whose order is that of before, then of the index. Of
// two members that before does not tell apart the rack counts first.
func (g *group) best(racks []*ranking, allowed func(m int32) bool, before func(a, b int32) bool, fits compareRacks) int32 {
	best := none
	for _, r := range racks {
		m := r.firstOf(allowed)
		if m == none {
			continue
		}
		if best == none || before(m, best) {
			best = m
			continue
		}
		if before(best, m) {
			continue
		}
		c := 0
		if fits != nil {
			c = fits(g.members[m].rack, g.members[best].rack)
		}
		if c < 0 || c == 0 && m < best {
			best = m
		}
	}
	return best
}

// rankClass ranks the members that stay by their tasks of one class, then by all.
func (g *group) rankClass(class int32) []*ranking {
	if g.ranked == class {
		return g.byClass
	}
	g.ranked = class
	if g.byClass == nil {
		before := func(a, b int32) bool { return g.fewer(a, b) || a < b && !g.fewer(b, a) }
		at := nowhere(len(g.members))
		for _, r := range g.racks {
			g.byClass = append(g.byClass, newRanking(slices.Clone(r.heap), at, before))
		}
		return g.byClass
	}
	for _, r := range g.byClass {
		r.reset()
	}
	return g.byClass
}

// fewer reports whether member a has fewer tasks than member b of the class that is ranked, or as many of these and fewer in all.
func (g *group) fewer(a, b int32) bool {
	count := g.count[g.ranked]
	return g.lessOf(count, a, b) || !g.lessOf(count, b, a) && g.less(a, b)
}

func anyone(int32) bool { return true }
