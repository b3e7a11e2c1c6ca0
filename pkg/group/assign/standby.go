package assign

import (
	"cmp"
	"slices"
)

// standbys places the copies kept for failover: those at work stay, the rest go to members with local
// state, else to the least loaded, positions and standbys counted together.
func (g *group) standbys(plans []MemberPlan) {
	chosen := make([][]int32, len(g.tasks))
	for t := range g.tasks {
		chosen[t] = g.keepStandbys(int32(t), nil, standby)
	}
	for t := range g.tasks {
		k := &g.tasks[t]
		if !k.stateful || k.home == none {
			continue
		}
		chosen[t] = g.keepStandbys(int32(t), chosen[t], local)
		for len(chosen[t]) < g.policy.Standbys {
			least := g.lightest(func(m int32) bool { return g.mayStandBy(k, m) && m != k.dest && !slices.Contains(chosen[t], m) }, nil)
			if least == none {
				break
			}
			g.weigh(least, 1)
			chosen[t] = append(chosen[t], least)
		}
		for _, m := range chosen[t] {
			plans[m].Standby = append(plans[m].Standby, k.id)
		}
	}
}

// keepStandbys adds the members with a copy of the given kind to those chosen for a task, the most caught
// up first.
func (g *group) keepStandbys(t int32, chosen []int32, kind kind) []int32 {
	var found []copied
	for _, c := range g.copiesOf(t) {
		if c.kind == kind && g.members[c.member].stays && g.mayStandBy(&g.tasks[t], c.member) {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b copied) int { return cmp.Compare(b.position, a.position) })
	for _, c := range found {
		if len(chosen) < g.policy.Standbys && !slices.Contains(chosen, c.member) {
			g.weigh(c.member, 1)
			chosen = append(chosen, c.member)
		}
	}
	return chosen
}

// mayStandBy: not where the task runs or is on its way to.
func (g *group) mayStandBy(k *task, m int32) bool {
	return k.home != none && m != k.home && m != k.from && (m != k.dest || k.next == wait)
}
