package state

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Store is one key-value store of a task. It is used by one goroutine at a time. Put and Delete report
// no errors: what they wrote on a DB that has failed or been closed never gets past Apply, which does.
type Store struct {
	db     *DB
	index  int // in db.stores
	prefix []byte
	rows   *rows
	keys   *filter // nil: nothing is known of keys that have no row
	tailed bool    // replay has been at the changelog's end
	buf    []byte  // the prefixed key of the latest read
	scan   scanner
}

// Get returns the value of key, or false. The value is valid until key is written. It may be changed in
// place by a caller that then passes it to Put.
func (s *Store) Get(key []byte) ([]byte, bool, error) {
	if s.db.closed.Load() {
		return nil, false, ErrClosed
	}
	if r := s.rows.find(key); r != nil {
		return r.value(), r.is(flagPresent), nil
	}
	if s.isNew(key) {
		return nil, false, nil
	}
	if s.db.replayed.Load() {
		if err := s.db.settle(); err != nil {
			return nil, false, err
		}
	}
	return s.load(key)
}

// isNew tells of a key without a row whether it is known to be absent.
func (s *Store) isNew(key []byte) bool { return s.keys != nil && !s.keys.has(s.rows.longHash(key)) }

// remember notes that a key exists.
func (s *Store) remember(key []byte) {
	if s.keys != nil && !s.keys.add(s.rows.longHash(key)) {
		s.forget()
	}
}

// forget gives up what is known of absent keys.
func (s *Store) forget() {
	if s.keys != nil {
		s.keys.release()
		s.keys = nil
	}
}

// load reads a key that has no row from Pebble and gives it one, even if it is absent.
func (s *Store) load(key []byte) ([]byte, bool, error) {
	d := s.db
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return nil, false, err
	}
	s.buf = append(append(s.buf[:0], s.prefix...), key...)
	value, closer, err := d.pebble.Get(s.buf)
	if errors.Is(err, pebble.ErrNotFound) {
		s.rows.insert(key, nil, false)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, d.readError(err)
	}
	r := s.rows.at(s.rows.insert(key, value, true))
	return r.value(), true, closer.Close()
}

// Put sets the value of key. It copies both.
func (s *Store) Put(key, value []byte) {
	if s.rows.write(key, value, true) {
		s.remember(key)
	}
}

// Delete removes key.
func (s *Store) Delete(key []byte) {
	r := s.rows.find(key)
	if r == nil && s.isNew(key) || r != nil && !r.is(flagPresent) {
		return // known to be absent
	}
	s.rows.write(key, nil, false)
}
