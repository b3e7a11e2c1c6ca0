package streams

import (
	"github.com/streamworker/streamworker/pkg/topology"
)

// Record is what functions see of a record. It is valid during the call, and what it refers to is not to be changed.
type Record[K, V any] struct {
	Key       K
	Value     V
	NullKey   bool  // there is no key: Key is the zero value
	NullValue bool  // likewise; of a table, the row was deleted
	Timestamp int64 // ms since the epoch
	// Window is that of the key, behind an aggregate in windows; else zero.
	Window Bounds

	call *topology.Call
}

// Bounds are those of a window, in ms since the epoch.
type Bounds struct{ Start, End int64 }

// Topic is that of the record that was read: a repartition topic behind a change of key.
func (r *Record[K, V]) Topic() string { return r.call.Source().Topic }

// Partition is that of the record that was read.
func (r *Record[K, V]) Partition() int32 { return r.call.Source().Partition }

// Offset is that of the record that was read.
func (r *Record[K, V]) Offset() int64 { return r.call.Source().Offset }

// Header returns the last header of that name, nil if there is none.
func (r *Record[K, V]) Header(name string) []byte {
	headers := r.call.Source().Headers
	for i := len(headers) - 1; i >= 0; i-- {
		if headers[i].Key == name {
			return headers[i].Value
		}
	}
	return nil
}

// reader makes records of what the topology hands to functions.
type reader[K, V any] struct {
	key   Serde[K]
	value Serde[V]
}

func (s *reader[K, V]) record(c *topology.Call) (r Record[K, V], err error) {
	k, v, w := c.Key(), c.Value(), c.Window()
	r = Record[K, V]{NullKey: k.Null(), NullValue: v.Null(), Timestamp: c.Timestamp(), Window: Bounds(w), call: c}
	if r.Key, err = s.key.decode(k, "key"); err == nil {
		r.Value, err = s.value.decode(v, "value")
	}
	return r, err
}
