package assign

import "slices"

// target decides where every task should end: first the stateful tasks, so that these are even, then the
// stateless ones on top of them, so that totals are even as well.
func (g *group) target() {
	g.failStateful()
	for {
		g.planStateful()
		if g.dropIdle() {
			continue
		}
		g.evenStateful()
		// A move planned now may take the reason from a learner at work, which is then dropped and the rest
		// planned again, so that the next round finds nothing to change. Each turn drops a learner.
		if !g.dropIdle() {
			break
		}
	}
	g.failStateless()
	g.planStateless()
	g.evenStateless()
}

// failStateful gives unclaimed stateful tasks a new home: the best copy there is, even on a member that is
// leaving, else the least loaded member. Planned positions count as load, learners at work included.
func (g *group) failStateful() {
	g.clearLoads()
	for t := range g.tasks {
		if k := &g.tasks[t]; k.stateful {
			g.total++
			k.dest = k.home
			if k.learner != none {
				k.dest = k.learner
			}
			g.put(int32(t), k.dest, 1)
		}
	}
	// Those with a copy first: where they go does not depend on loads.
	for _, copies := range []bool{true, false} {
		for t := len(g.tasks) - 1; t >= 0; t-- {
			k := &g.tasks[t]
			if !k.stateful || k.home != none {
				continue
			}
			if copies {
				k.home = g.bestCopy(int32(t))
			} else {
				k.home, k.fresh = g.anyMember(int32(t)), true
			}
			if k.home == none {
				continue
			}
			if k.learner == k.home {
				k.learner = none // counted already
			} else if k.learner == none {
				g.put(int32(t), k.home, 1)
			}
		}
	}
}

// bestCopy is the member whose copy of an unclaimed task lets it run soonest.
func (g *group) bestCopy(t int32) int32 {
	var best *copied
	copies := g.copiesOf(t)
	for i := range copies {
		if c := &copies[i]; !g.members[c.member].superseded && !g.shuns(t, c.member) && (best == nil || g.sooner(c, best)) {
			best = c
		}
	}
	if best == nil {
		return none
	}
	return best.member
}

// sooner puts ready learners first, then the most caught-up copy. Positions of copies at work are coarse, so
// of two that are equal the ready one counts, then the one on a member that stays.
func (g *group) sooner(a, b *copied) bool {
	la, lb := a.ready && a.kind == learning, b.ready && b.kind == learning
	if la != lb {
		return la
	}
	if !la && a.position != b.position {
		return a.position > b.position
	}
	if a.ready != b.ready {
		return a.ready
	}
	if sa, sb := g.members[a.member].stays, g.members[b.member].stays; sa != sb {
		return sa
	}
	return a.kind < b.kind
}

// anyMember is the least loaded member that stays, or if nobody does, that is at least not superseded.
func (g *group) anyMember(t int32) int32 {
	if len(g.staying) > 0 {
		return g.leastLoaded(t)
	}
	least := none
	for m := range g.members {
		if !g.members[m].superseded && (least == none || g.less(int32(m), least)) {
			least = int32(m)
		}
	}
	return least
}

// planStateful sends the learners at work to the end of their ways and gives every other task of a member
// that does not stay a destination: a standby, else local state, else the least loaded. The kinds take
// turns, and tasks go in descending order.
func (g *group) planStateful() {
	g.clearLoads()
	g.moves = g.moves[:0]
	var rest []int32
	for t := len(g.tasks) - 1; t >= 0; t-- {
		k := &g.tasks[t]
		if !k.stateful {
			continue
		}
		k.dest = k.home
		switch {
		case k.home == none:
			continue
		case k.learner != none:
			k.dest = k.learner
			g.moves = append(g.moves, int32(t))
		case !g.members[k.home].stays && len(g.staying) > 0:
			rest = append(rest, int32(t))
			continue
		}
		g.put(int32(t), k.dest, 1)
	}
	for _, standbys := range []bool{true, false} {
		rest = slices.DeleteFunc(rest, func(t int32) bool { return g.send(t, g.copyToTake(t, standbys)) })
	}
	for _, t := range rest {
		g.send(t, g.leastLoaded(t))
	}
}

// send plans the move of a task to dest, unless that is none.
func (g *group) send(t, dest int32) bool {
	if dest == none {
		return false
	}
	g.tasks[t].dest = dest
	g.put(t, dest, 1)
	g.moves = append(g.moves, t)
	return true
}

// copyToTake is the member that stays with the best standby, or the best other state: ready, then most caught
// up, then least loaded.
func (g *group) copyToTake(t int32, standbys bool) int32 {
	var best *copied
	copies := g.copiesOf(t)
	for i := range copies {
		c := &copies[i]
		if (c.kind == standby) != standbys || c.member == g.tasks[t].home || !g.members[c.member].stays || g.shuns(t, c.member) {
			continue
		}
		if best == nil || c.ready && !best.ready || c.ready == best.ready &&
			(c.position > best.position || c.position == best.position && g.less(c.member, best.member)) {
			best = c
		}
	}
	if best == nil {
		return none
	}
	return best.member
}

// dropIdle drops learners whose reason has gone. It reports whether there were any.
func (g *group) dropIdle() bool {
	dropped := false
	for t := len(g.tasks) - 1; t >= 0; t-- {
		k := &g.tasks[t]
		if k.learner == none || g.hasReason(int32(t)) {
			continue
		}
		g.shift(int32(t), k.learner, k.home)
		k.learner = none
		dropped = true
	}
	return dropped
}

// hasReason reports whether a task has to move from its home to where it is planned to end: the home does not
// stay, or were the task not to move, the two would be far enough apart to move it.
func (g *group) hasReason(t int32) bool {
	k := &g.tasks[t]
	return !g.members[k.home].stays || g.apart(k.home, 1, k.dest, -1) || g.apartOf(g.count[k.class], k.home, 1, k.dest, -1)
}

// failStateless gives unclaimed stateless tasks a home, and adds all stateless tasks to the loads.
func (g *group) failStateless() {
	g.total = int64(len(g.tasks))
	for t := range g.tasks {
		if k := &g.tasks[t]; !k.stateful {
			k.learner, k.dest = none, k.home
			if k.home != none && (g.members[k.home].stays || len(g.staying) == 0) {
				g.put(int32(t), k.home, 1)
			}
		}
	}
	for t := len(g.tasks) - 1; t >= 0; t-- {
		if k := &g.tasks[t]; !k.stateful && k.home == none {
			if k.home, k.fresh = g.anyMember(int32(t)), true; k.home != none {
				k.dest = k.home
				g.put(int32(t), k.home, 1)
			}
		}
	}
}

// planStateless sends the stateless tasks of members that do not stay to the least loaded. One that is on
// the way to such a member arrives first.
func (g *group) planStateless() {
	if len(g.staying) == 0 {
		return
	}
	for t := len(g.tasks) - 1; t >= 0; t-- {
		if k := &g.tasks[t]; !k.stateful && k.owned() && !g.members[k.home].stays {
			g.send(int32(t), g.leastLoaded(int32(t)))
		}
	}
}
