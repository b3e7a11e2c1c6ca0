package assign

// ranking is a heap of members, that of the best rank on top. Ranks change with loads: fix says so.
type ranking struct {
	heap   []int32
	at     []int32 // per member of the group: its place in heap; of members in no ranking that shares it: none
	before func(a, b int32) bool
}

// newRanking ranks the given members. Rankings that have no member in common may share at.
func newRanking(members, at []int32, before func(a, b int32) bool) *ranking {
	r := &ranking{heap: members, at: at, before: before}
	for i, m := range members {
		at[m] = int32(i)
	}
	r.reset()
	return r
}

// nowhere is an at for n members that are in no ranking yet.
func nowhere(n int) []int32 {
	at := make([]int32, n)
	for m := range at {
		at[m] = none
	}
	return at
}

// reset ranks all members anew.
func (r *ranking) reset() {
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.down(int32(i))
	}
}

// first is the member of the best rank, none if there are none.
func (r *ranking) first() int32 {
	if len(r.heap) == 0 {
		return none
	}
	return r.heap[0]
}

// fix ranks a member anew, if it is in a ranking.
func (r *ranking) fix(m int32) {
	if i := r.at[m]; i != none {
		r.down(i)
		r.up(r.at[m])
	}
}

// remove takes a member out.
func (r *ranking) remove(m int32) {
	i, last := r.at[m], int32(len(r.heap)-1)
	r.swap(i, last)
	r.heap, r.at[m] = r.heap[:last], none
	if i < last {
		r.fix(r.heap[i])
	}
}

// firstOf is the member of the best rank among those that are allowed, none if there are none.
func (r *ranking) firstOf(allowed func(m int32) bool) int32 {
	return r.firstFrom(0, none, allowed)
}

// firstFrom looks at the place i and below, for one of better rank than best.
func (r *ranking) firstFrom(i int, best int32, allowed func(m int32) bool) int32 {
	switch {
	case i >= len(r.heap) || best != none && !r.before(r.heap[i], best):
		return best
	case allowed(r.heap[i]):
		return r.heap[i]
	}
	best = r.firstFrom(2*i+1, best, allowed)
	return r.firstFrom(2*i+2, best, allowed)
}

func (r *ranking) swap(i, j int32) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.at[r.heap[i]], r.at[r.heap[j]] = i, j
}

func (r *ranking) up(i int32) {
	for i > 0 {
		parent := (i - 1) / 2
		if !r.before(r.heap[i], r.heap[parent]) {
			return
		}
		r.swap(i, parent)
		i = parent
	}
}

func (r *ranking) down(i int32) {
	for n := int32(len(r.heap)); ; {
		best := i
		for _, child := range [2]int32{2*i + 1, 2*i + 2} {
			if child < n && r.before(r.heap[child], r.heap[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		r.swap(i, best)
		i = best
	}
}
