package state

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Applied returns the value of key as of the last Apply, which is what is committed, or in a copy as of the last
// ApplyChangelog; false if there is none. Unlike Get it may be called from any goroutine at any time: it looks at what was
// applied lately and then at Pebble, takes no lock that the task's goroutine waits for, and leaves the rows as they are.
func (s *Store) Applied(key []byte) ([]byte, bool, error) {
	d := s.db
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return nil, false, err
	}
	for _, c := range slices.Backward(d.pendingChanges()) {
		sc := &c.stores[s.index]
		if i, ok := slices.BinarySearchFunc(sc.list, key, func(ch change, key []byte) int { return bytes.Compare(sc.key(ch), key) }); ok {
			value := sc.value(sc.list[i])
			return bytes.Clone(value), value != nil, nil
		}
	}
	value, closer, err := d.pebble.Get(slices.Concat(s.prefix, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, d.readError(err)
	}
	return bytes.Clone(value), true, closer.Close()
}

// AppliedRange is Range over what Applied sees, all of it as of one Apply. It may be called from any goroutine.
func (s *Store) AppliedRange(from, to []byte) *Iterator {
	d := s.db
	d.applying.Lock() // nothing moves to Pebble between the look at one and at the other
	defer d.applying.Unlock()
	return s.iterate(from, to, sortedLast(s.within(from, to, d.pendingChanges())))
}
