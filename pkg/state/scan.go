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

// Scan calls f for the rows from (inclusive) to (exclusive) in order of the key, until f returns false; nil means no
// bound. It sees what Get sees. Key and value are valid during the call, and f must not write to the store.
func (s *Store) Scan(from, to []byte, f func(key, value []byte) bool) error {
	d := s.db
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	// First the writes, then Pebble: changes that are applied in between are then seen twice, not missed.
	overlay := s.written(from, to)
	it, err := s.iterator()
	if err != nil {
		return d.readError(err)
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
		more := true
		if order > 0 {
			more = f(it.Key()[prefixLen:], it.Value())
			below = more && it.Next()
		} else {
			if row := overlay[0]; row.value != nil {
				more = f(row.key, row.value)
			}
			overlay = overlay[1:]
			below = below && (order < 0 || it.Next())
		}
		if !more {
			break
		}
	}
	if err := it.Error(); err != nil {
		return d.readError(err)
	}
	return nil
}

// written collects the writes to keys within the bounds that are not applied, the last one of each key, in order.
func (s *Store) written(from, to []byte) []overlayRow {
	s.rows.sort()
	all := s.scan.overlay[:0]
	s.db.mu.Lock()
	for _, c := range s.db.mu.outstanding {
		sc := &c.stores[s.index]
		at, _ := slices.BinarySearchFunc(sc.list, from, func(ch change, from []byte) int { return bytes.Compare(sc.key(ch), from) })
		for _, ch := range sc.list[at:] {
			key := sc.key(ch)
			if to != nil && bytes.Compare(key, to) >= 0 {
				break
			}
			all = append(all, overlayRow{key, sc.value(ch)})
		}
	}
	s.db.mu.Unlock()
	frozen := len(all)
	upper := btreemap.Max[[]byte]()
	if to != nil {
		upper = btreemap.LT(to)
	}
	for key := range s.rows.sorted.tree.Ascend(btreemap.GE(from), upper) {
		r := s.rows.find(key)
		row := overlayRow{key: key}
		if r.is(flagPresent) {
			row.value = r.value()
		}
		all = append(all, row)
	}
	s.scan.overlay = all
	if frozen == 0 {
		return all // each key once, in order
	}
	slices.SortStableFunc(all, func(a, b overlayRow) int { return bytes.Compare(a.key, b.key) })
	return lastOfEach(all)
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
