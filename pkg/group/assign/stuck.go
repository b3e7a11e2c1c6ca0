package assign

// stuckCopy is a copy of a task that does not come on.
type stuckCopy struct{ task, member int32 }

// stick reads which copies are stuck. Where they are stuck on all members that stay, that counts for nothing,
// nor does it of one that is ready.
func (g *group) stick(reports []*Member, index map[TaskID]int32) {
	said := make(map[stuckCopy]bool)
	count := make(map[int32]int) // per task: how many of those that stay are stuck
	for m, r := range reports {
		for _, id := range r.Stuck {
			t, ok := index[id]
			if c := (stuckCopy{t, int32(m)}); ok && !said[c] && !g.readyAt(t, int32(m)) {
				said[c] = true
				if g.members[m].stays {
					count[t]++
				}
			}
		}
	}
	for c := range said {
		if count[c.task] == len(g.staying) {
			delete(said, c)
		}
	}
	g.stuck = said
}

// shuns reports whether a copy of the task had better not be on the member.
func (g *group) shuns(t, m int32) bool {
	return len(g.stuck) > 0 && g.stuck[stuckCopy{t, m}]
}

// welcome allows members on which a copy of the task is not stuck.
func (g *group) welcome(t int32) func(m int32) bool {
	if len(g.stuck) == 0 {
		return anyone
	}
	return func(m int32) bool { return !g.shuns(t, m) }
}
