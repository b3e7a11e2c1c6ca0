package assign

// less reports whether member a is less loaded than member b: planned positions by capacity, compared
// exactly.
func (g *group) less(a, b int32) bool {
	return g.load[a]*g.members[b].capacity < g.load[b]*g.members[a].capacity
}

// apart reports whether the load of high less that of low, taken with planned positions added to each,
// is at least the balancing factor. As the factor is two or more, and one position adds at most one to a
// load, a move from high to low then leaves low below what high was before.
func (g *group) apart(high int32, addHigh int64, low int32, addLow int64) bool {
	ch, cl := g.members[high].capacity, g.members[low].capacity
	return (g.load[high]+addHigh)*cl-(g.load[low]+addLow)*ch >= int64(g.policy.BalancingFactor)*ch*cl
}

// leastLoaded is the first of the least loaded among the given members, none if there are none.
func (g *group) leastLoaded(among []int32) int32 {
	least := none
	for _, m := range among {
		if least == none || g.less(m, least) {
			least = m
		}
	}
	return least
}
