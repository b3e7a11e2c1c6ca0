package state

import "sync/atomic"

// budget bounds the memory of all row tables together. A table takes what is free; when nothing is, it
// gives back what it has above an equal share. Tables below their share may go beyond the limit, as
// others give back only when they run next.
type budget struct {
	limit  int64
	used   atomic.Int64
	tables atomic.Int64
}

// over tells whether a table that holds used bytes and needs more has to give something back.
func (b *budget) over(used, need int64) bool {
	return b.used.Load()+need > b.limit && used+need > b.limit/max(1, b.tables.Load())
}

// giveBack empties the oldest pages until need bytes fit into the budget, or enough was done for now.
func (t *rows) giveBack(need int) {
	for n := 0; n < maxGiveBack && len(t.order) > 1; n++ {
		if len(t.order) < maxPages-maxGiveBack && !t.budget.over(t.used.Load(), int64(need)) {
			return
		}
		// Rows found lately get a second chance, but not so many that none would go.
		t.empty(n < maxGiveBack/2)
	}
}

// trim is giveBack for a table that needs nothing, so that an idle one shrinks as well.
func (t *rows) trim() {
	if t.budget.over(t.used.Load(), 0) {
		t.giveBack(0)
	}
}

// empty evicts the rows of the oldest page, moves those that have to stay to the open page and drops it.
func (t *rows) empty(secondChance bool) {
	t.moving = true
	no := t.order[0]
	t.order = t.order[1:]
	p := t.pages[no]
	for off := 0; off < len(p); {
		l, r := location(no)<<offsetBits|location(off/rowAlign), row(p[off:])
		off += r.size()
		if r.is(flagDead) {
			continue
		}
		if t.pinned(r) || secondChance && r.is(flagUsed) {
			t.move(l, r)
			continue
		}
		t.unlink(t.slot(t.hash(r.key()), r.key()))
	}
	t.pages[no] = nil
	t.spare = append(t.spare, no)
	t.charge(-cap(p))
	t.last = 0
	t.moving = false
	if n := len(t.slots); n > minSlots && t.live < n/8 {
		t.resize(n / 2)
	}
}

// pinned tells whether Pebble does not hold the row's value yet.
func (t *rows) pinned(r row) bool { return r.is(flagDirty) || r.tag() > t.applied.Load() }

// move copies a row as it is to the open page.
func (t *rows) move(from location, r row) {
	slot := t.slot(t.hash(r.key()), r.key())
	size := r.size()
	l := t.alloc(size)
	moved := t.at(l)
	copy(moved[:size], r[:size])
	moved.setHead(r.head() &^ flagUsed)
	if r.is(flagDirty) {
		t.dirty[r.tag()] = l
	}
	t.slots[slot] = t.slots[slot]&^(1<<32-1) | uint64(l)
	r.setHead(r.head() | flagDead)
}

// clear drops all rows, dirty ones too.
func (t *rows) clear() {
	t.slots, t.live = nil, 0
	t.pages, t.spare, t.order, t.last = make([]page, 1), nil, nil, 0
	t.dirty = nil
	if t.sorted != nil {
		t.sorted.clear()
	}
	t.budget.used.Add(-t.used.Swap(0))
}

// close returns the table's part of the budget.
func (t *rows) close() {
	t.budget.used.Add(-t.used.Swap(0))
	t.budget.tables.Add(-1)
}
