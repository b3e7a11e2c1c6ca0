package state

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// rows is a hash table from keys to values: the write buffer of a store and a cache of it in one.
//
// A row lies in a page, a plain byte slice, so that millions of rows cost the garbage collector
// nothing. Pages fill up one after the other and are given back in the same order; what is still
// needed of a page moves on to the open one (CLOCK over a log). A page that was given back is never
// written again, so a value handed out stays intact until its own key is written.
//
// A row is clean, dirty (written since the last freeze) or frozen (in Changes that are not applied).
// Only clean rows may be evicted.
//
// rows belongs to one goroutine; only used may be read by others.
type rows struct {
	seed  maphash.Seed
	slots []uint64 // open addressing, linear probing: hash<<32 | location; 0: free
	live  int      // slots in use

	pages []page   // by page number; page 0 is never used, so that location 0 means none
	spare []uint32 // numbers of pages that were given back
	order []uint32 // page numbers by age; the last one is open
	last  location // row found by the latest find; 0: none. Saves the look-up of a write after a read

	dirty  []location
	sorted *sortedKeys // of the dirty rows; nil: nobody has asked yet

	budget  *budget
	used    atomic.Int64 // bytes of pages and slots
	applied *atomic.Uint32
	moving  bool // a page is being emptied: take new pages without giving back others
}

// page is filled up to its length.
type page []byte

// location is a page number and the offset in the page divided by rowAlign.
type location uint32

const (
	offsetBits  = 13
	rowAlign    = 8
	maxPage     = rowAlign << offsetBits // 64 KiB
	minPage     = maxPage / 16
	bigRow      = maxPage / 4 // rows from here on get a page of their own
	maxPages    = 1 << (32 - offsetBits)
	minSlots    = 64
	maxGiveBack = 8 // pages emptied at most per page taken: bounds the pause
)

// row starts at the header of a row and ends somewhere after it.
//
//	0  key length, flags in the four highest bits
//	4  value length
//	8  value capacity
//	12 dirty: index into rows.dirty; else the number of the last freeze that took it
//	16 key, value
type row []byte

const (
	rowHeader = 16

	flagPresent = 1 << 31 // else the key is known to be absent
	flagDirty   = 1 << 30
	flagUsed    = 1 << 29 // found since its page was last passed over
	flagDead    = 1 << 28 // the row has moved or was evicted
	keyLenMask  = flagDead - 1
)

func (r row) head() uint32        { return binary.LittleEndian.Uint32(r) }
func (r row) setHead(h uint32)    { binary.LittleEndian.PutUint32(r, h) }
func (r row) is(flag uint32) bool { return r.head()&flag != 0 }
func (r row) keyLen() int         { return int(r.head() & keyLenMask) }
func (r row) valueLen() int       { return int(binary.LittleEndian.Uint32(r[4:])) }
func (r row) setValueLen(n int)   { binary.LittleEndian.PutUint32(r[4:], uint32(n)) }
func (r row) valueCap() int       { return int(binary.LittleEndian.Uint32(r[8:])) }
func (r row) setValueCap(n int)   { binary.LittleEndian.PutUint32(r[8:], uint32(n)) }
func (r row) tag() uint32         { return binary.LittleEndian.Uint32(r[12:]) }
func (r row) setTag(tag uint32)   { binary.LittleEndian.PutUint32(r[12:], tag) }
func (r row) key() []byte         { return r[rowHeader : rowHeader+r.keyLen()] }
func (r row) size() int           { return rowSize(r.keyLen(), r.valueCap()) }
func rowSize(key, valueCap int) int {
	return (rowHeader + key + valueCap + rowAlign - 1) &^ (rowAlign - 1)
}

// value is nil for an absent key. Its capacity is cut so that an append copies it.
func (r row) value() []byte {
	if !r.is(flagPresent) {
		return nil
	}
	from := rowHeader + r.keyLen()
	to := from + r.valueLen()
	return r[from:to:to]
}

func newRows(b *budget, applied *atomic.Uint32) *rows {
	b.tables.Add(1)
	return &rows{seed: maphash.MakeSeed(), budget: b, applied: applied, pages: make([]page, 1)}
}

func (t *rows) at(l location) row {
	return row(t.pages[l>>offsetBits][int(l&(1<<offsetBits-1))*rowAlign:])
}

func (t *rows) longHash(key []byte) uint64 { return maphash.Bytes(t.seed, key) }
func (t *rows) hash(key []byte) uint32     { return uint32(t.longHash(key)) }

// find returns the row of key, or nil.
func (t *rows) find(key []byte) row {
	if t.last != 0 {
		if r := t.at(t.last); bytes.Equal(r.key(), key) {
			return r
		}
	}
	if i := t.slot(t.hash(key), key); i >= 0 {
		t.last = location(t.slots[i])
		r := t.at(t.last)
		if h := r.head(); h&flagUsed == 0 {
			r.setHead(h | flagUsed)
		}
		return r
	}
	return nil
}

// slot returns the index of key's slot, or -1.
func (t *rows) slot(hash uint32, key []byte) int {
	if t.live == 0 {
		return -1
	}
	mask := len(t.slots) - 1
	for i := int(hash) & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if uint32(t.slots[i]>>32) == hash && bytes.Equal(t.at(location(t.slots[i])).key(), key) {
			return i
		}
	}
	return -1
}

// write makes value the dirty value of key; nil with present false makes it a tombstone. It tells whether
// the key had no row.
func (t *rows) write(key, value []byte, present bool) (inserted bool) {
	r := t.find(key)
	switch {
	case r == nil:
		t.markDirty(t.insert(key, value, present))
		return true
	case len(value) <= r.valueCap():
		copy(r[rowHeader+r.keyLen():], value)
		r.setValueLen(len(value))
	default:
		r = t.regrow(r, key, value)
	}
	head := r.head() &^ flagPresent
	if present {
		head |= flagPresent
	}
	r.setHead(head)
	t.markDirty(t.last)
	return false
}

func (t *rows) markDirty(l location) {
	r := t.at(l)
	if h := r.head(); h&flagDirty == 0 {
		r.setHead(h | flagDirty)
		r.setTag(uint32(len(t.dirty)))
		t.dirty = append(t.dirty, l)
		if t.sorted != nil {
			t.sorted.add(r.key())
		}
	}
}

// insert adds a clean row for a key that has none, makes it the last one found and returns its place.
func (t *rows) insert(key, value []byte, present bool) location {
	l := t.place(key, value, len(value))
	head := uint32(len(key))
	if present {
		head |= flagPresent
	}
	t.at(l).setHead(head)
	t.link(t.hash(key), l)
	t.last = l
	return l
}

// regrow moves a row whose value has outgrown it to a place with room to grow on.
func (t *rows) regrow(r row, key, value []byte) row {
	hash, head, tag := t.hash(key), r.head(), r.tag()
	t.unlink(t.slot(hash, key))
	l := t.place(key, value, len(value)+len(value)/4) // may move other rows, not this one: it is dead
	moved := t.at(l)
	moved.setHead(head)
	moved.setTag(tag)
	if head&flagDirty != 0 {
		t.dirty[tag] = l
	}
	t.link(hash, l)
	t.last = l
	return moved
}

// place writes a row without flags to the open page, with tag 0.
func (t *rows) place(key, value []byte, valueCap int) location {
	size := rowSize(len(key), valueCap)
	l := t.alloc(size)
	r := t.at(l)
	r.setHead(uint32(len(key)))
	r.setValueLen(len(value))
	r.setValueCap(size - rowHeader - len(key))
	r.setTag(0)
	copy(r[rowHeader:], key)
	copy(r[rowHeader+len(key):], value)
	return l
}

// link enters a row that has no slot.
func (t *rows) link(hash uint32, l location) {
	if t.live+t.live/2 >= len(t.slots) { // at most two thirds full
		t.resize(max(minSlots, 2*len(t.slots)))
	}
	t.setSlot(uint64(hash)<<32 | uint64(l))
	t.live++
}

func (t *rows) setSlot(s uint64) {
	mask := len(t.slots) - 1
	i := int(s>>32) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// resize moves all slots to an array of n, a power of two.
func (t *rows) resize(n int) {
	old := t.slots
	t.slots = make([]uint64, n)
	t.charge(8 * (n - len(old)))
	for _, s := range old {
		if s != 0 {
			t.setSlot(s)
		}
	}
}

// unlink frees slot i and marks its row dead. The slots after it move up, so that no probe ends early.
func (t *rows) unlink(i int) {
	r := t.at(location(t.slots[i]))
	r.setHead(r.head() | flagDead)
	t.last = 0
	t.live--
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		home := int(t.slots[j]>>32) & mask
		if (j-home)&mask >= (j-i)&mask { // the probe for j passes i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = 0
}

// alloc returns a place for size bytes.
func (t *rows) alloc(size int) location {
	if n := len(t.order); n > 0 && size < bigRow {
		no := t.order[n-1]
		p := t.pages[no]
		if off := len(p); cap(p)-off >= size {
			t.pages[no] = p[:off+size]
			return location(no)<<offsetBits | location(off/rowAlign)
		}
	}
	capacity := size
	if size < bigRow {
		// Small tables stay small: a page is about an eighth of what there is.
		capacity = min(maxPage, max(minPage, size, 1<<bits.Len64(uint64(t.used.Load()/8))))
	}
	if !t.moving {
		t.giveBack(capacity)
	}
	var no uint32
	if n := len(t.spare); n > 0 {
		no, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		no = uint32(len(t.pages))
		t.pages = append(t.pages, nil)
	}
	t.pages[no] = make(page, size, capacity)
	t.charge(capacity)
	t.order = append(t.order, no)
	return location(no) << offsetBits
}

func (t *rows) charge(n int) {
	t.used.Add(int64(n))
	t.budget.used.Add(int64(n))
}
