package assign

import "slices"

// evenTurns bounds how often moves are planned in place of those that others have made needless, or that have to wait.
const evenTurns = 8

// evenStateful plans moves of stateful tasks until members that stay are not apart, first in all their tasks, then in those
// of each class. The latter can wait until those who leave have nothing that waits.
func (g *group) evenStateful() {
	first := len(g.moves)
	for range evenTurns {
		before := len(g.moves)
		s := g.stock(true)
		g.evenTotals(s)
		g.start()
		changed := g.withdraw(first)
		if g.classes == 1 || slices.ContainsFunc(g.moves[:first], func(t int32) bool { return g.tasks[t].next == wait }) {
			return
		}
		s = g.stock(true)
		g.evenClasses(s)
		g.start()
		if changed = g.withdraw(first) || changed; !changed && len(g.moves) == before && s.given == 0 {
			return
		}
	}
}

// evenStateless is the same for stateless tasks, whose moves wait for nothing.
func (g *group) evenStateless() {
	s := g.stock(false)
	g.evenTotals(s)
	g.evenClasses(s)
	g.start()
}

// evenTotals plans moves while the most loaded owner and the least loaded member are apart.
func (g *group) evenTotals(s *stock) {
	owners := make([]int32, 0, len(g.staying))
	for _, m := range g.staying {
		if s.left[m] > 0 {
			owners = append(owners, m)
		}
	}
	high := newRanking(owners, nowhere(len(g.members)), func(a, b int32) bool { return g.less(b, a) || !g.less(a, b) && a < b })
	for {
		from := high.first()
		if from == none {
			return
		}
		to := g.lightest(anyone, g.elsewhere(g.members[from].rack))
		if !g.apart(from, 0, to, 0) {
			return
		}
		t := s.choose(from, to)
		if t == none {
			high.remove(from) // until another round
			continue
		}
		g.give(s, t, from, to)
		high.fix(from)
		high.fix(to)
		if s.left[from] == 0 {
			high.remove(from)
		}
	}
}

func (g *group) evenClasses(s *stock) {
	for before := -1; before != s.given; { // one class may take from another what that has gained
		before = s.given
		for c := range s.shelves {
			if s.shelves[c] != nil {
				g.evenClass(s, int32(c))
			}
		}
	}
}

// evenClass plans moves of tasks of a class while the owner and the member with most and fewest of them are apart. Where
// a move would set the totals of the two apart, a task of another class goes the other way. Each turn brings down the
// sum of the squares of all counts, so there is an end.
func (g *group) evenClass(s *stock, class int32) {
	count := g.count[class]
	for {
		from, to := none, none
		for _, m := range g.staying {
			if sh := s.shelves[class][m]; sh != nil && sh.left > 0 && (from == none || g.lessOf(count, from, m)) {
				from = m
			}
			if to == none || g.lessOf(count, m, to) {
				to = m
			}
		}
		if from == none || !g.apartOf(count, from, 0, to, 0) {
			return
		}
		t, back := s.best(class, from, to), none
		if t == none {
			return
		}
		if g.apart(to, 1, from, -1) {
			if back = g.exchange(s, class, from, to); back == none {
				return
			}
		}
		g.give(s, t, from, to)
		if back != none {
			g.give(s, back, to, from)
		}
	}
}

// exchange is the task of another class that best goes back when one of the given class goes from one member to another, none
// if none would make classes more even.
func (g *group) exchange(s *stock, class, from, to int32) int32 {
	// The change of the sum of count²/capacity, times both capacities.
	change := func(class, from, to int32) int64 {
		return (1-2*g.count[class][from])*g.members[to].capacity + (1+2*g.count[class][to])*g.members[from].capacity
	}
	back, least := none, -change(class, from, to)
	for c := range s.shelves {
		if s.shelves[c] == nil || int32(c) == class {
			continue
		}
		if sh := s.shelves[c][to]; sh != nil && sh.left > 0 {
			if d := change(int32(c), to, from); d < least {
				if t := s.best(int32(c), to, from); t != none {
					back, least = t, d
				}
			}
		}
	}
	return back
}

// give plans the move of a task that is in stock. One that nobody has had goes to the other member at once.
func (g *group) give(s *stock, t, from, to int32) {
	g.shift(t, from, to)
	if k := &g.tasks[t]; k.fresh {
		k.home = to
	} else {
		g.moves = append(g.moves, t)
	}
	s.given++
	s.left[from]--
	s.shelves[g.tasks[t].class][from].left--
}

// withdraw takes back those moves from the given one on that have to wait, as only what is at work gives a reason
// to other learners, and then those that have no reason any more. It reports whether there were any of the latter.
func (g *group) withdraw(first int) bool {
	g.withdrawIf(first, func(t int32) bool { return g.tasks[t].next == wait })
	planned := len(g.moves)
	for before := -1; before != len(g.moves); {
		before = len(g.moves)
		g.withdrawIf(first, func(t int32) bool { return !g.hasReason(t) })
	}
	return len(g.moves) < planned
}

func (g *group) withdrawIf(first int, idle func(t int32) bool) {
	kept := slices.DeleteFunc(g.moves[first:], func(t int32) bool {
		if !idle(t) {
			return false
		}
		g.shift(t, g.tasks[t].dest, g.tasks[t].home)
		return true
	})
	g.moves = g.moves[:first+len(kept)]
}
