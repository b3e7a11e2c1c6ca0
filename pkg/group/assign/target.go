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
		planned := len(g.moves)
		g.even(true)
		g.start()
		g.withdraw(planned)
		// A move planned now may take the reason from a learner at work, which is then dropped and the rest
		// planned again, so that the next round finds nothing to change. Each turn drops a learner.
		if !g.dropIdle() {
			break
		}
	}
	g.failStateless()
	g.planStateless()
	g.even(false)
	g.start()
}

// failStateful gives unclaimed stateful tasks a new home: the best copy there is, even on a member that is
// leaving, else the least loaded member. Planned positions count as load, learners at work included.
func (g *group) failStateful() {
	clear(g.load)
	for t := range g.tasks {
		if k := &g.tasks[t]; k.stateful {
			k.dest = k.home
			if k.learner != none {
				k.dest = k.learner
			}
			g.add(k.dest, 1)
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
				k.home = g.anyMember()
			}
			if k.home == none {
				continue
			}
			if k.learner == k.home {
				k.learner = none // counted already
			} else if k.learner == none {
				g.add(k.home, 1)
			}
		}
	}
}

// bestCopy is the member whose copy of an unclaimed task lets it run soonest.
func (g *group) bestCopy(t int32) int32 {
	var best *copied
	copies := g.copiesOf(t)
	for i := range copies {
		if c := &copies[i]; !g.members[c.member].superseded && (best == nil || g.sooner(c, best)) {
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
func (g *group) anyMember() int32 {
	if len(g.staying) > 0 {
		return g.leastLoaded(g.staying)
	}
	least := none
	for m := range g.members {
		if !g.members[m].superseded && (least == none || g.less(int32(m), least)) {
			least = int32(m)
		}
	}
	return least
}

// add changes the load of m, if that is a member.
func (g *group) add(m int32, n int64) {
	if m != none {
		g.load[m] += n
	}
}

// planStateful sends the learners at work to the end of their ways and gives every other task of a member
// that does not stay a destination: a standby, else local state, else the least loaded. The kinds take
// turns, and tasks go in descending order.
func (g *group) planStateful() {
	clear(g.load)
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
		g.load[k.dest]++
	}
	for _, standbys := range []bool{true, false} {
		rest = slices.DeleteFunc(rest, func(t int32) bool { return g.send(t, g.copyToTake(t, standbys)) })
	}
	for _, t := range rest {
		g.send(t, g.leastLoaded(g.staying))
	}
}

// send plans the move of a task to dest, unless that is none.
func (g *group) send(t, dest int32) bool {
	if dest == none {
		return false
	}
	g.tasks[t].dest = dest
	g.load[dest]++
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
		if (c.kind == standby) != standbys || c.member == g.tasks[t].home || !g.members[c.member].stays {
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

// dropIdle drops learners whose reason has gone: their task's home stays, and were the task not to move,
// the two would not be far enough apart to move it. It reports whether there were any.
func (g *group) dropIdle() bool {
	dropped := false
	for t := len(g.tasks) - 1; t >= 0; t-- {
		k := &g.tasks[t]
		if k.learner == none || !g.members[k.home].stays || g.apart(k.home, 1, k.learner, -1) {
			continue
		}
		g.load[k.home]++
		g.load[k.learner]--
		k.learner, k.dest = none, k.home
		dropped = true
	}
	return dropped
}

// failStateless gives unclaimed stateless tasks a home, and adds all stateless tasks to the loads.
func (g *group) failStateless() {
	for t := range g.tasks {
		if k := &g.tasks[t]; !k.stateful {
			k.learner, k.dest = none, k.home
			if k.home != none && (g.members[k.home].stays || len(g.staying) == 0) {
				g.load[k.home]++
			}
		}
	}
	for t := len(g.tasks) - 1; t >= 0; t-- {
		if k := &g.tasks[t]; !k.stateful && k.home == none {
			if k.home = g.anyMember(); k.home != none {
				k.dest = k.home
				g.load[k.home]++
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
			g.send(int32(t), g.leastLoaded(g.staying))
		}
	}
}

// even plans moves of stateful or of stateless tasks while the most loaded owner and the least loaded
// member are apart, lowest task first.
func (g *group) even(stateful bool) {
	own := make([][]int32, len(g.members)) // per member: the tasks it could give away, the lowest first
	for t := range g.tasks {
		k := &g.tasks[t]
		if k.stateful == stateful && k.home != none && k.dest == k.home && g.members[k.home].stays && (stateful || k.owned()) {
			own[k.home] = append(own[k.home], int32(t))
		}
	}
	for {
		high, low := none, g.leastLoaded(g.staying)
		for _, m := range g.staying {
			if len(own[m]) > 0 && (high == none || g.less(high, m)) {
				high = m
			}
		}
		if high == none || !g.apart(high, 0, low, 0) {
			return
		}
		g.load[high]--
		g.send(own[high][0], low)
		own[high] = own[high][1:]
	}
}

// withdraw takes back those moves from the given one on that have to wait: only what is at work gives a reason
// to other learners.
func (g *group) withdraw(from int) {
	g.moves = append(g.moves[:from], slices.DeleteFunc(g.moves[from:], func(t int32) bool {
		k := &g.tasks[t]
		if k.next != wait {
			return false
		}
		g.load[k.dest]--
		g.load[k.home]++
		k.dest = k.home
		return true
	})...)
}
