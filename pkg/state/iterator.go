package state

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Iterator walks over a range of a store as it was when the iterator was made. It has to be closed.
// It may be used from one goroutine at a time, not necessarily the task's.
type Iterator struct {
	db      *DB
	prefix  []byte
	pebble  *pebble.Iterator // over what Pebble holds; nil once closed
	started bool
	overlay []overlayRow // over it, what Pebble does not hold yet, in order of the key

	key, value []byte
	err        error
}

type overlayRow struct{ key, value []byte } // nil value: deleted

// Range returns an iterator over the keys from (inclusive) to (exclusive); nil means no bound. It is
// called by the task's goroutine.
func (s *Store) Range(from, to []byte) *Iterator {
	// First the writes, then Pebble: changes that are applied in between are then seen twice, not missed.
	return s.iterate(from, to, s.overlay(from, to))
}

// iterate walks over what Pebble holds now, and the writes over it.
func (s *Store) iterate(from, to []byte, overlay []overlayRow) *Iterator {
	d := s.db
	it := &Iterator{db: d, prefix: s.prefix, overlay: overlay}
	d.closing.RLock()
	defer d.closing.RUnlock()
	if it.err = d.usable(); it.err != nil {
		return it
	}
	upper := prefixEnd(s.prefix)
	if to != nil {
		upper = slices.Concat(s.prefix, to)
	}
	it.pebble, it.err = d.pebble.NewIter(&pebble.IterOptions{LowerBound: slices.Concat(s.prefix, from), UpperBound: upper})
	if it.err == nil {
		d.mu.Lock()
		d.mu.iterators[it] = struct{}{}
		d.mu.Unlock()
	}
	return it
}

// overlay copies the writes to keys within the bounds that Pebble does not hold yet, the last one of each key.
func (s *Store) overlay(from, to []byte) []overlayRow {
	d := s.db
	d.mu.Lock()
	outstanding := d.mu.outstanding
	d.mu.Unlock()
	rows := s.within(from, to, outstanding)
	for _, l := range s.rows.dirty {
		if r := s.rows.at(l); inRange(r.key(), from, to) {
			row := overlayRow{key: bytes.Clone(r.key())}
			if r.is(flagPresent) {
				row.value = append([]byte{}, r.value()...)
			}
			rows = append(rows, row)
		}
	}
	return sortedLast(rows)
}

// within returns the changes to keys within the bounds, those that were made first at first.
func (s *Store) within(from, to []byte, all []*Changes) []overlayRow {
	var rows []overlayRow
	for _, c := range all {
		sc := &c.stores[s.index]
		at, _ := slices.BinarySearchFunc(sc.list, from, func(ch change, from []byte) int { return bytes.Compare(sc.key(ch), from) })
		for _, ch := range sc.list[at:] {
			key := sc.key(ch)
			if !inRange(key, from, to) {
				break
			}
			rows = append(rows, overlayRow{key, sc.value(ch)})
		}
	}
	return rows
}

func inRange(key, from, to []byte) bool {
	return bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0)
}

// sortedLast puts rows in order of the key and keeps the last one of those with the same.
func sortedLast(rows []overlayRow) []overlayRow {
	slices.SortStableFunc(rows, func(a, b overlayRow) int { return bytes.Compare(a.key, b.key) })
	return lastOfEach(rows)
}

// Next moves to the next key, the first one at the first call. It returns false at the end or on an error.
func (it *Iterator) Next() bool {
	it.db.closing.RLock()
	defer it.db.closing.RUnlock()
	if it.err != nil {
		return false
	}
	if it.pebble == nil {
		it.err = ErrClosed
		return false
	}
	if !it.started {
		it.started = true
		it.pebble.First()
	} else if it.pebble.Valid() && bytes.Equal(it.pebble.Key()[prefixLen:], it.key) {
		it.pebble.Next()
	}
	for {
		below := it.pebble.Valid()
		if !below {
			if err := it.pebble.Error(); err != nil {
				it.err = it.db.readError(err)
				return false
			}
		}
		if len(it.overlay) == 0 {
			if below {
				it.key = append(it.key[:0], it.pebble.Key()[prefixLen:]...)
				it.value = append(it.value[:0], it.pebble.Value()...)
			}
			return below
		}
		top := it.overlay[0]
		order := -1
		if below {
			order = bytes.Compare(top.key, it.pebble.Key()[prefixLen:])
		}
		if order > 0 {
			it.key = append(it.key[:0], it.pebble.Key()[prefixLen:]...)
			it.value = append(it.value[:0], it.pebble.Value()...)
			return true
		}
		it.overlay = it.overlay[1:]
		if top.value != nil {
			it.key, it.value = append(it.key[:0], top.key...), append(it.value[:0], top.value...)
			return true
		}
		if order == 0 {
			it.pebble.Next()
		}
	}
}

// Key returns the current key; it is valid until the next call.
func (it *Iterator) Key() []byte { return it.key }

// Value returns the current value; it is valid until the next call.
func (it *Iterator) Value() []byte { return it.value }

// Err returns the error that ended the iteration, ErrClosed if the DB was closed meanwhile.
func (it *Iterator) Err() error { return it.err }

// Close frees the iterator. It may be called again, and after the DB was closed.
func (it *Iterator) Close() error {
	it.db.closing.RLock()
	defer it.db.closing.RUnlock()
	if it.pebble == nil {
		return nil
	}
	it.db.mu.Lock()
	delete(it.db.mu.iterators, it)
	it.db.mu.Unlock()
	return it.closeLocked()
}

// closeLocked frees the iterator; the caller holds closing.
func (it *Iterator) closeLocked() error {
	err := it.pebble.Close()
	it.pebble = nil
	return err
}
