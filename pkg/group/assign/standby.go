package assign

import (
	"cmp"
	"slices"
)

// standbys places the copies kept for failover. Those at work stay, unless one would better be in another rack.
func (g *group) standbys(plans []MemberPlan) {
	chosen := make([][]copied, len(g.tasks))
	for t := range g.tasks {
		if g.tasks[t].stateful && g.tasks[t].home != none {
			chosen[t] = g.keepStandbys(int32(t))
		}
	}
	// What is placed for one task changes the loads by which it was decided for others: so again, until nothing changes.
	for changed := true; changed; {
		changed = false
		for t := range g.tasks {
			if g.tasks[t].stateful && g.tasks[t].home != none && g.placeStandbys(int32(t), &chosen[t]) {
				changed = true
			}
		}
	}
	for t := range g.tasks {
		for _, c := range chosen[t] {
			plans[c.member].Standby = append(plans[c.member].Standby, g.tasks[t].id)
		}
	}
}

// keepStandbys are the standbys at work that stay: those that are best apart from the task and from each other, then those that
// are most caught up. Beyond their number a ready one stays for each that is not, but is in a better rack.
func (g *group) keepStandbys(t int32) (kept []copied) {
	var at []copied
	for _, c := range g.copiesOf(t) {
		if c.kind == standby && g.members[c.member].stays && g.mayStandBy(t, c.member) && !holds(at, c.member) {
			at = append(at, c)
		}
	}
	slices.SortStableFunc(at, func(a, b copied) int { return cmp.Compare(b.position, a.position) })
	for len(kept) < g.policy.Standbys && len(at) > 0 {
		best := 0
		for i := range at {
			if g.together(t, kept, at[i].member) < g.together(t, kept, at[best].member) {
				best = i
			}
		}
		kept = append(kept, at[best])
		at = slices.Delete(at, best, best+1)
	}
	spare := 0
	for _, c := range kept {
		if !c.ready {
			spare++
		}
	}
	for _, c := range at {
		if spare > 0 && c.ready && g.together(t, kept, c.member) > 0 {
			kept = append(kept, c)
			spare--
		}
	}
	for _, c := range kept {
		g.weigh(c.member, 1)
	}
	return kept
}

// placeStandbys adds what is missing, and puts a standby into another rack if that has fewer of the task's copies. One that is
// ready stays until its replacement is. It reports whether it has changed anything.
func (g *group) placeStandbys(t int32, chosen *[]copied) (changed bool) {
	for len(*chosen) < g.policy.Standbys {
		c := g.placeFor(t, *chosen)
		if c.member == none {
			return changed
		}
		*chosen, changed = append(*chosen, c), true
		g.weigh(c.member, 1)
	}
	k := &g.tasks[t]
	if g.rackCount <= 1 || k.dest != k.home || k.from != none || len(*chosen) > g.policy.Standbys {
		return changed // what is on the move leaves its state where it was: the best place for a standby
	}
	for i, c := range *chosen {
		others := slices.Delete(slices.Clone(*chosen), i, i+1)
		better := func(m int32) bool {
			return m != none && g.together(t, others, m) < g.together(t, others, c.member) && !g.apart(m, 0, c.member, -1)
		}
		// Whether it goes must not hang on what is on disk: no round comes when a member has more there.
		to := copied{task: t, member: g.lightestFor(t, *chosen)}
		if !better(to.member) {
			continue
		}
		if onDisk := g.placeFor(t, *chosen); better(onDisk.member) {
			to = onDisk
		}
		g.weigh(to.member, 1)
		if c.ready {
			*chosen = append(*chosen, to)
			return true // the next one when this one is done
		}
		g.weigh(c.member, -1)
		(*chosen)[i], changed = to, true
	}
	return changed
}

// lightestFor is the least loaded member of the rack with the fewest copies of a task, of the racks in which a member is not apart from
// the least loaded one; none if no member is left.
func (g *group) lightestFor(t int32, chosen []copied) (best int32) {
	k := &g.tasks[t]
	may := func(m int32) bool { return g.mayStandBy(t, m) && m != k.dest && !holds(chosen, m) }
	best = none
	least := g.lightest(may, nil)
	if least == none {
		return none
	}
	for _, r := range g.racks {
		m := r.firstOf(may)
		if m == none || g.apart(m, 0, least, 0) {
			continue
		}
		n := g.together(t, chosen, m)
		if best == none || n < g.together(t, chosen, best) || n == g.together(t, chosen, best) && g.lighter(m, best) {
			best = m
		}
	}
	return best
}

// placeFor is where one more standby of a task goes: to a member with local state in a rack with no more of its copies than that of
// lightestFor, else to that. The member is none if there is none left.
func (g *group) placeFor(t int32, chosen []copied) copied {
	found := copied{task: t, member: g.lightestFor(t, chosen)}
	if found.member == none {
		return found
	}
	var onDisk *copied
	copies := g.copiesOf(t)
	for i := range copies {
		c := &copies[i]
		if c.kind != local || !g.members[c.member].stays || !g.mayStandBy(t, c.member) || holds(chosen, c.member) ||
			g.together(t, chosen, c.member) > g.together(t, chosen, found.member) {
			continue
		}
		if onDisk == nil || c.position > onDisk.position {
			onDisk = c
		}
	}
	if onDisk != nil {
		found.member = onDisk.member
	}
	return found
}

// together counts the copies of a task in the rack of m: where the task ends, and the standbys chosen.
func (g *group) together(t int32, chosen []copied, m int32) (n int) {
	if g.rackCount <= 1 {
		return 0
	}
	k, rack := &g.tasks[t], g.members[m].rack
	end := k.dest
	if k.next == wait {
		end = k.home
	}
	if g.members[end].rack == rack {
		n++
	}
	for _, c := range chosen {
		if c.member != m && g.members[c.member].rack == rack {
			n++
		}
	}
	return n
}

func holds(copies []copied, m int32) bool {
	return slices.ContainsFunc(copies, func(c copied) bool { return c.member == m })
}

// mayStandBy: not where the task runs or is on its way to, nor where its copy is stuck.
func (g *group) mayStandBy(t, m int32) bool {
	k := &g.tasks[t]
	return k.home != none && m != k.home && m != k.from && (m != k.dest || k.next == wait) && !g.shuns(t, m)
}
