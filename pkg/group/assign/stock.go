package assign

import (
	"cmp"
	"slices"
)

// stock is what members could give away.
type stock struct {
	g       *group
	left    []int      // per member: tasks in stock
	given   int        // tasks
	shelves [][]*shelf // per class, if any of it are in stock, and member
	copies  map[place][]int32
}

// shelf holds a member's tasks of one class, apart by the racks that have their input.
type shelf struct {
	left   int
	queues []queue
}

// queue holds tasks in order; those that were given away since are still in it.
type queue struct {
	racks int32
	tasks []int32
}

// place is where a task of a class is, and where a copy of it is.
type place struct{ class, home, copy int32 }

func (g *group) stock(stateful bool) *stock {
	s := &stock{g: g, left: make([]int, len(g.members)), shelves: make([][]*shelf, g.classes)}
	for t := range g.tasks {
		k := &g.tasks[t]
		if k.stateful != stateful || !g.inStock(k) {
			continue
		}
		if s.shelves[k.class] == nil {
			s.shelves[k.class] = make([]*shelf, len(g.members))
		}
		sh := s.shelves[k.class][k.home]
		if sh == nil {
			sh = &shelf{}
			s.shelves[k.class][k.home] = sh
		}
		s.left[k.home]++
		sh.add(k.racks, int32(t))
	}
	if stateful {
		s.sortCopies()
	}
	return s
}

// inStock reports whether a task could be given away: it is to stay on a member that stays itself.
func (g *group) inStock(k *task) bool {
	return k.home != none && k.dest == k.home && g.members[k.home].stays && (k.stateful || k.fresh || k.owned())
}

func (sh *shelf) add(racks, t int32) {
	sh.left++
	i := slices.IndexFunc(sh.queues, func(q queue) bool { return q.racks == racks })
	if i < 0 {
		i = len(sh.queues)
		sh.queues = append(sh.queues, queue{racks: racks})
	}
	sh.queues[i].tasks = append(sh.queues[i].tasks, t)
}

// sortCopies finds the copies of what is in stock on members that could take it, the best first.
func (s *stock) sortCopies() {
	s.copies = make(map[place][]int32)
	best := make(map[place][]copied)
	for _, c := range s.g.copies {
		k := &s.g.tasks[c.task]
		if s.g.inStock(k) && c.member != k.home && s.g.members[c.member].stays && !s.g.shuns(c.task, c.member) {
			at := place{k.class, k.home, c.member}
			best[at] = append(best[at], c)
		}
	}
	for at, copies := range best {
		slices.SortFunc(copies, func(a, b copied) int {
			return cmp.Or(orderBools(a.ready, b.ready), cmp.Compare(a.kind, b.kind), cmp.Compare(b.position, a.position), cmp.Compare(a.task, b.task))
		})
		for _, c := range copies {
			s.copies[at] = append(s.copies[at], c.task)
		}
	}
}

// copyAt is the task of a class that its home gives to another member with the least to restore there, none if that has no
// copy of any.
func (s *stock) copyAt(class, home, to int32) int32 {
	at := place{class, home, to}
	list, known := s.copies[at]
	if !known {
		return none
	}
	for len(list) > 0 && s.g.tasks[list[0]].dest != home {
		list = list[1:]
	}
	if s.copies[at] = list; len(list) == 0 {
		return none
	}
	return list[0]
}

// choose is the task that the one member had best give to the other: of the class in which they are furthest apart, if there
// are several of one that the other has a copy of, then the lowest. It is none if the other is to have no copy of any.
func (s *stock) choose(from, to int32) int32 {
	best, bestCopy, most := none, false, int64(0)
	for c := range s.shelves {
		if s.shelves[c] == nil {
			continue
		}
		sh := s.shelves[c][from]
		if sh == nil || sh.left == 0 {
			continue
		}
		count := s.g.count[c]
		d := count[from]*s.g.members[to].capacity - count[to]*s.g.members[from].capacity
		has := s.copyAt(int32(c), from, to) != none
		if best != none && (d < most || d == most && (bestCopy || !has)) {
			continue
		}
		if t := s.best(int32(c), from, to); t != none {
			best, bestCopy, most = t, has, d
		}
	}
	return best
}

// best is the task of a class to give: one that the other member has a copy of, else one whose input is in the other's rack and
// not in that of its home, else the lowest.
func (s *stock) best(class, from, to int32) int32 {
	if t := s.copyAt(class, from, to); t != none {
		return t
	}
	best, most := none, 0
	sh := s.shelves[class][from]
	for i := range sh.queues {
		q := &sh.queues[i]
		for len(q.tasks) > 0 && s.g.tasks[q.tasks[0]].dest != from {
			q.tasks = q.tasks[1:]
		}
		for _, t := range q.tasks {
			if s.g.tasks[t].dest != from || s.g.shuns(t, to) {
				continue
			}
			gain := s.g.near(q.racks, s.g.members[to].rack) - s.g.near(q.racks, s.g.members[from].rack)
			if best == none || gain > most || gain == most && t < best {
				best, most = t, gain
			}
			break
		}
	}
	return best
}
