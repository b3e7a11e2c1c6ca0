package state

import (
	"bytes"
	"slices"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

// sortedKeys are the keys of a store's dirty rows in order. A store keeps them from its first scan on: the others do
// not pay for them.
type sortedKeys struct {
	tree  *btreemap.BTreeMap[[]byte, struct{}]
	bytes []byte // of the keys, one after the other; a full one is left to the tree
}

const (
	sortedDegree = 32
	sortedPage   = 16 << 10
)

func (k *sortedKeys) add(key []byte) {
	if len(k.bytes)+len(key) > cap(k.bytes) {
		k.bytes = make([]byte, 0, max(sortedPage, len(key)))
	}
	from := len(k.bytes)
	k.bytes = append(k.bytes, key...)
	k.tree.ReplaceOrInsert(k.bytes[from:len(k.bytes):len(k.bytes)], struct{}{})
}

func (k *sortedKeys) clear() {
	k.tree.Clear(true)
	k.bytes = nil
}

// sort makes the table keep its dirty keys in order.
func (t *rows) sort() {
	if t.sorted != nil {
		return
	}
	t.sorted = &sortedKeys{tree: btreemap.New[[]byte, struct{}](sortedDegree, bytes.Compare)}
	for _, l := range t.dirty {
		t.sorted.add(t.at(l).key())
	}
}

// scanner is what a store needs for scans, kept from one to the next.
type scanner struct {
	pebble       *pebble.Iterator // over what Pebble held after so many writes; nil: none
	writes       uint64
	lower, upper []byte
	overlay      []overlayRow
}

// scanRound bounds how many written rows a scan collects at a time: the first rows of a range cost no more than that.
const scanRound = 128

// Scan calls f for the rows from (inclusive) to (exclusive) in order of the key, until f returns false; nil means no
// bound. It sees what Get sees. Key and value are valid during the call, and f must not write to the store.
func (s *Store) Scan(from, to []byte, f func(key, value []byte) bool) error {
	d := s.db
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	for {
		// First the writes, then Pebble: changes that are applied in between are then seen twice, not missed.
		overlay, next := s.written(from, to)
		upper := to
		if next != nil {
			upper = next
		}
		more, err := s.scanOver(overlay, from, upper, f)
		if err != nil {
			return d.readError(err)
		}
		if !more || next == nil {
			return nil
		}
		from = next
	}
}

// scanOver calls f for the rows of Pebble with the overlay over them. It returns false if f did.
func (s *Store) scanOver(overlay []overlayRow, from, to []byte, f func(key, value []byte) bool) (bool, error) {
	it, err := s.iterator()
	if err != nil {
		return false, err
	}
	x := &s.scan
	x.lower, x.upper = append(append(x.lower[:0], s.prefix...), from...), append(x.upper[:0], s.prefix...)
	if x.upper = append(x.upper, to...); to == nil {
		x.upper = append(x.upper[:0], prefixEnd(s.prefix)...)
	}
	it.SetBounds(x.lower, x.upper)
	for below := it.First(); below || len(overlay) > 0; {
		order := 1 // of the written row's key to that of Pebble's
		if !below {
			order = -1
		} else if len(overlay) > 0 {
			order = bytes.Compare(overlay[0].key, it.Key()[prefixLen:])
		}
		if order > 0 {
			if !f(it.Key()[prefixLen:], it.Value()) {
				return false, it.Error()
			}
			below = it.Next()
			continue
		}
		if row := overlay[0]; row.value != nil && !f(row.key, row.value) {
			return false, it.Error()
		}
		overlay = overlay[1:]
		if order == 0 {
			below = it.Next()
		}
	}
	return true, it.Error()
}

// written collects the writes to keys within the bounds that are not applied, the last one of each key, in order: the first
// ones, and next is where there are more; nil: there are none.
func (s *Store) written(from, to []byte) (rows []overlayRow, next []byte) {
	s.rows.sort()
	all, sources := s.scan.overlay[:0], 0
	within := func(key []byte) bool { return to == nil || bytes.Compare(key, to) < 0 }
	cut := func(key []byte) {
		if next == nil || bytes.Compare(key, next) < 0 {
			next = key
		}
	}
	s.db.mu.Lock()
	for _, c := range s.db.mu.outstanding {
		sc := &c.stores[s.index]
		at, _ := slices.BinarySearchFunc(sc.list, from, func(ch change, from []byte) int { return bytes.Compare(sc.key(ch), from) })
		before := len(all)
		for _, ch := range sc.list[at:] {
			key := sc.key(ch)
			if !within(key) {
				break
			}
			if len(all)-before == scanRound {
				cut(key)
				break
			}
			all = append(all, overlayRow{key, sc.value(ch)})
		}
		if len(all) > before {
			sources++
		}
	}
	s.db.mu.Unlock()
	before := len(all)
	for key := range s.rows.sorted.tree.Ascend(btreemap.GE(from), btreemap.Max[[]byte]()) {
		if !within(key) {
			break
		}
		if len(all)-before == scanRound {
			cut(key)
			break
		}
		row := overlayRow{key: key}
		if r := s.rows.find(key); r.is(flagPresent) {
			row.value = r.value()
		}
		all = append(all, row)
	}
	if len(all) > before {
		sources++
	}
	s.scan.overlay = all
	if sources > 1 {
		all = sortedLast(all)
	}
	if next != nil {
		end, _ := slices.BinarySearchFunc(all, next, func(r overlayRow, next []byte) int { return bytes.Compare(r.key, next) })
		all = all[:end]
	}
	return all, next
}

// lastOfEach keeps the last one of rows with the same key.
func lastOfEach(rows []overlayRow) []overlayRow {
	last := rows[:0]
	for i, r := range rows {
		if i+1 == len(rows) || !bytes.Equal(r.key, rows[i+1].key) {
			last = append(last, r)
		}
	}
	return last
}

// iterator returns the store's iterator over Pebble as it is now. It is kept until something is written to Pebble or
// the task's work is cut off, so an idle task holds none.
func (s *Store) iterator() (*pebble.Iterator, error) {
	writes := s.db.writes.Load()
	if s.scan.pebble != nil && s.scan.writes == writes {
		return s.scan.pebble, nil
	}
	if err := s.endScans(); err != nil {
		return nil, err
	}
	it, err := s.db.pebble.NewIter(&pebble.IterOptions{LowerBound: s.prefix, UpperBound: prefixEnd(s.prefix)})
	if err != nil {
		return nil, err
	}
	s.scan.pebble, s.scan.writes = it, writes
	return it, nil
}

// endScans frees the iterator. It is called by the task's goroutine, or with closing held for writing.
func (s *Store) endScans() error {
	it := s.scan.pebble
	if it == nil {
		return nil
	}
	s.scan.pebble = nil
	return it.Close()
}
