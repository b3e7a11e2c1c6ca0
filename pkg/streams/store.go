package streams

import (
	"fmt"
	"iter"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Store keeps values by key for a custom processor. What is written belongs to the record being processed: it is committed with its
// offset, and taken back if the record turns out bad. When something fails, the store can no longer be read or a value has not
// its form, the record is not processed; there is no need to look.
type Store[K, V any] struct {
	keyed[K, V]
	rows *topology.CustomRows
}

// keyed is what stores have in common.
type keyed[K, V any] struct {
	name  string
	in    *setting
	key   Serde[K]
	value Serde[V]

	k, v topology.Datum // being used
}

// unknown panics for a store without rows.
func (s *keyed[K, V]) unknown() {
	panic(fmt.Sprintf("streams: store %s was not taken when the topology was built", s.name))
}

func (s *keyed[K, V]) fail(err error) { s.in.task.Fail(fmt.Errorf("store %s: %w", s.name, err)) }

// at sets s.k.
func (s *keyed[K, V]) at(key K) bool {
	s.k.SetNull()
	err := s.key.write(key, &s.k)
	if err != nil {
		s.fail(err)
	}
	return err == nil
}

// is sets s.v.
func (s *keyed[K, V]) is(value V) bool {
	s.v.SetNull()
	err := s.value.write(value, &s.v)
	if err != nil {
		s.fail(err)
	}
	return err == nil
}

func (s *keyed[K, V]) keyOf(d *topology.Datum) (K, bool) {
	key, err := s.key.decode(d, "key")
	if err != nil {
		s.fail(err)
	}
	return key, err == nil
}

func (s *keyed[K, V]) valueOf(d *topology.Datum) (V, bool) {
	value, err := s.value.decode(d, "value")
	if err != nil {
		s.fail(err)
	}
	return value, err == nil
}

// NewStore takes a store, in a processor's setup. Its name is unique in the topology; a changelog topic is named after it.
func NewStore[K, V, K2, V2 any](ctx *Context[K2, V2], name string, key Serde[K], value Serde[V]) *Store[K, V] {
	s := &Store[K, V]{keyed: keyed[K, V]{name: name, in: &ctx.setting, key: key.asKey(), value: value}}
	ctx.stores = append(ctx.stores, topology.CustomStore{Name: name, Key: key.format, Value: value.format})
	if ctx.task != nil {
		s.rows = ctx.task.Store(name)
	}
	return s
}

// opened returns the rows, for use.
func (s *Store[K, V]) opened() *topology.CustomRows {
	s.in.running()
	if s.rows == nil {
		s.unknown()
	}
	return s.rows
}

// Get returns the value of a key, and whether there is one.
func (s *Store[K, V]) Get(key K) (V, bool) {
	v, _, ok := s.GetTime(key)
	return v, ok
}

// GetTime is Get with the timestamp of the record, or the time of the timer, that has written the value.
func (s *Store[K, V]) GetTime(key K) (value V, timestamp int64, ok bool) {
	rows := s.opened()
	if !s.at(key) {
		return value, 0, false
	}
	d, ts, ok := rows.Get(&s.k)
	if !ok {
		return value, 0, false
	}
	s.v = d
	value, ok = s.valueOf(&s.v)
	return value, ts, ok
}

// Put sets the value of a key. One that is null deletes it.
func (s *Store[K, V]) Put(key K, value V) {
	if rows := s.opened(); s.at(key) && s.is(value) {
		rows.Put(&s.k, &s.v)
	}
}

// Delete deletes a key.
func (s *Store[K, V]) Delete(key K) {
	if rows := s.opened(); s.at(key) {
		rows.Delete(&s.k)
	}
}

// All are the keys with their values, in order of the keys' bytes. The store may be changed meanwhile; whether changes behind the
// present key are seen is not said.
func (s *Store[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var from, to topology.Datum
		from.SetNull()
		to.SetNull()
		s.scan(&from, &to, yield)
	}
}

// Range is All from a key on and before another one.
func (s *Store[K, V]) Range(from, to K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var bounds [2]topology.Datum
		for i, key := range []K{from, to} {
			if bounds[i].SetNull(); s.opened() == nil || !s.at(key) {
				return
			}
			bounds[i] = s.k
		}
		s.scan(&bounds[0], &bounds[1], yield)
	}
}

func (s *Store[K, V]) scan(from, to *topology.Datum, yield func(K, V) bool) {
	s.opened().Scan(from, to, func(k, v topology.Datum, _ int64) bool {
		key, ok := s.keyOf(&k)
		if !ok {
			return false
		}
		value, ok := s.valueOf(&v)
		return ok && yield(key, value)
	})
}
