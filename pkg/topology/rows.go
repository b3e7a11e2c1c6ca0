package topology

import (
	"fmt"
	"math"
)

// OrderedStore is a Store that can be read in order of the key, as windows and joins need it.
type OrderedStore interface {
	Store
	// Scan calls f for the rows from (inclusive) to (exclusive) in order of the key, until f returns false; nil means no
	// bound. Key and value are valid during the call, and f does not write to the store.
	Scan(from, to []byte, f func(key, value []byte) bool) error
}

// rows are those of an ordered store, with whatever keys its owner gives them. Changes can be taken back.
type rows struct {
	p         *Processor
	spec      *StoreSpec
	store     OrderedStore
	journaled bool
}

func (c *chain) rows(s *StoreSpec) rows {
	return rows{p: c.p, spec: s, store: c.p.stores[s.Name].(OrderedStore), journaled: c.journaled}
}

func (r *rows) get(key []byte) ([]byte, bool, error) {
	row, ok, err := r.store.Get(key)
	if err != nil {
		return nil, false, fmt.Errorf("store %s: %w", r.spec.Name, err)
	}
	return row, ok, nil
}

// remember notes for a rollback what the store has for a key.
func (r *rows) remember(key []byte) error {
	if !r.journaled {
		return nil
	}
	row, ok, err := r.get(key)
	if err == nil {
		r.p.journal.remember(r.store, key, row, ok)
	}
	return err
}

func (r *rows) put(key, value []byte) error {
	if err := r.remember(key); err != nil {
		return err
	}
	if err := r.p.Limits.oversized(sizeOf(key, value, nil), r.spec.Changelog, "a row of store", r.spec.Name); err != nil {
		return fault{err}
	}
	r.store.Put(key, value)
	return nil
}

func (r *rows) remove(key []byte) error {
	if err := r.remember(key); err != nil {
		return err
	}
	r.store.Delete(key)
	return nil
}

func (r *rows) scan(from, to []byte, f func(key, value []byte) bool) error {
	if err := r.store.Scan(from, to, f); err != nil {
		return fmt.Errorf("store %s: %w", r.spec.Name, err)
	}
	return nil
}

// bound is a lower bound of the times of some rows, so that the store need not be asked each time.
type bound struct {
	time   int64
	floor  int64  // what time was, and was lowered to, since a record began: it holds when the record is taken back
	record uint64 // the one that floor is of
	since  uint64 // the number of rollbacks that it knows of
}

func unknownBound(p *Processor) bound {
	return bound{math.MinInt64, math.MinInt64, p.records, p.rollbacks}
}

// follow takes note of what has happened since the last look.
func (b *bound) follow(p *Processor) {
	if b.since != p.rollbacks {
		b.since, b.time = p.rollbacks, min(b.time, b.floor)
	}
	if b.record != p.records {
		b.record, b.floor = p.records, b.time
	}
}

// lower notes a row with this time.
func (b *bound) lower(time int64, p *Processor) {
	b.follow(p)
	b.time, b.floor = min(b.time, time), min(b.floor, time)
}

// raise notes that there is no row of an earlier time.
func (b *bound) raise(time int64, p *Processor) {
	b.follow(p)
	b.time = time
}

// reached tells whether there may be a row with a time up to this one.
func (b *bound) reached(time int64, p *Processor) bool {
	b.follow(p)
	return b.time <= time
}
