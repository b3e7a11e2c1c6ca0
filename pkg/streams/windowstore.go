package streams

import (
	"iter"
	"time"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/window"
)

// WindowStore keeps values by key and window for a custom processor, which chooses the windows' bounds: those of Tumbling windows,
// of sessions, or others. A window goes when the processor's stream time, the largest timestamp that it has seen, is beyond its end by
// more than the store's retention. What holds for a Store holds for it too.
type WindowStore[K, V any] struct {
	keyed[K, V]
	rows *topology.CustomWindows
}

// NewWindowStore takes a store with windows, in a processor's setup. Its name is unique in the topology; a changelog topic is named
// after it. The retention is in whole ms.
func NewWindowStore[K, V, K2, V2 any](ctx *Context[K2, V2], name string, key Serde[K], value Serde[V], retention time.Duration) *WindowStore[K, V] {
	s := &WindowStore[K, V]{keyed: keyed[K, V]{name: name, in: &ctx.setting, key: key.asKey(), value: value}}
	ctx.stores = append(ctx.stores, topology.CustomStore{Name: name, Key: key.format, Value: value.format, Windowed: true, Retention: retention.Milliseconds()})
	if ctx.task != nil {
		s.rows = ctx.task.Windows(name)
	}
	return s
}

// opened returns the rows, for use.
func (s *WindowStore[K, V]) opened() *topology.CustomWindows {
	s.in.running()
	if s.rows == nil {
		s.unknown()
	}
	return s.rows
}

// Get returns the value of a key in a window, and whether there is one.
func (s *WindowStore[K, V]) Get(key K, of Bounds) (value V, ok bool) {
	rows := s.opened()
	if !s.at(key) {
		return value, false
	}
	if s.v, _, ok = rows.Get(&s.k, window.Bounds(of)); !ok {
		return value, false
	}
	return s.valueOf(&s.v)
}

// Put sets the value of a key in a window. One that is null deletes it.
func (s *WindowStore[K, V]) Put(key K, of Bounds, value V) {
	if rows := s.opened(); s.at(key) && s.is(value) {
		rows.Put(&s.k, window.Bounds(of), &s.v)
	}
}

// Delete deletes a key's window.
func (s *WindowStore[K, V]) Delete(key K, of Bounds) {
	if rows := s.opened(); s.at(key) {
		s.v.SetNull()
		rows.Put(&s.k, window.Bounds(of), &s.v)
	}
}

// Of are the windows of a key that have a part of a time, with both ends of that in ms since the epoch, in order of the windows'
// ends. The store may be changed meanwhile.
func (s *WindowStore[K, V]) Of(key K, from, to int64) iter.Seq2[Bounds, V] {
	return func(yield func(Bounds, V) bool) {
		rows := s.opened()
		if !s.at(key) {
			return
		}
		k := s.k
		rows.Scan(&k, from, func(of window.Bounds, v topology.Datum, _ int64) bool {
			if of.Start > to {
				return true
			}
			value, ok := s.valueOf(&v)
			return ok && yield(Bounds(of), value)
		})
	}
}

// Windowed is a key with a window.
type Windowed[K any] struct {
	Key    K
	Window Bounds
}

// Ended are the windows of all keys whose end is at a time or before, in ms since the epoch, in order of end and key. The store may be
// changed meanwhile: they are often forwarded and deleted by a timer.
func (s *WindowStore[K, V]) Ended(by int64) iter.Seq2[Windowed[K], V] {
	return func(yield func(Windowed[K], V) bool) {
		s.opened().Ended(by, func(k topology.Datum, of window.Bounds, v topology.Datum, _ int64) bool {
			key, ok := s.keyOf(&k)
			if !ok {
				return false
			}
			value, ok := s.valueOf(&v)
			return ok && yield(Windowed[K]{key, Bounds(of)}, value)
		})
	}
}
