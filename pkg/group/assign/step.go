package assign

// step turns the target into the next safe plan: who goes on, which learners run, what changes hands now.
func (g *group) step() Plan {
	plans := make([]MemberPlan, len(g.members))
	for t := range g.tasks {
		g.order(&g.tasks[t], plans)
	}
	if g.policy.Standbys > 0 {
		g.standbys(plans)
	}
	plan := make(Plan, len(g.members))
	for m := range g.members {
		plans[m].Superseded = g.members[m].superseded
		plan[g.members[m].id] = plans[m]
	}
	return plan
}

// start decides for each planned move whether the task changes hands in this round, its destination
// learns, or it waits for one of the destination's learners to finish.
func (g *group) start() {
	for t := range g.tasks {
		g.tasks[t].next = wait
	}
	atWork := make([]int, len(g.members))
	for _, t := range g.moves {
		k := &g.tasks[t]
		switch {
		case k.dest == k.home: // its learner was dropped
		case k.dest == k.from: // has to release it first
		case k.owned() && (!k.stateful || g.readyAt(t, k.dest)):
			k.next = handover
		case g.policy.MaxLearners <= 0 || atWork[k.dest] < g.policy.MaxLearners:
			k.next = learn
			atWork[k.dest]++
		}
	}
}

// readyAt reports whether the copy of a task that runs on m is ready.
func (g *group) readyAt(t, m int32) bool {
	for _, c := range g.copiesOf(t) {
		if c.member == m && c.ready {
			return true
		}
	}
	return false
}

// order writes down what the members concerned do with a task.
func (g *group) order(k *task, plans []MemberPlan) {
	if k.home == none {
		return // there are no members
	}
	from, to := k.from, k.home
	if k.next == handover {
		from, to = k.home, k.dest
	}
	if from == none {
		plans[to].Own = append(plans[to].Own, k.id)
	} else {
		h := Handover{Task: k.id, Release: ReleaseID{Generation: g.generation, Owner: g.members[from].id}}
		if k.releasing {
			h.Release = k.release // a repeated order keeps its identity
		}
		plans[from].Release = append(plans[from].Release, h)
		plans[to].Take = append(plans[to].Take, h)
	}
	if k.next == learn {
		plans[k.dest].Learn = append(plans[k.dest].Learn, k.id)
	}
}
