package tasks

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

const slabRecords = 128

// slab is memory for records on their way to the broker. It is used again when each of its records was answered. Records
// find it by their Context, which the producer leaves alone and may look at even later: it never changes, and never ends.
// What ends the writing of a task is the context that is given with the record.
type slab struct {
	context.Context
	records  [slabRecords]kgo.Record
	used     int
	answered atomic.Int32
}

var slabs = sync.Pool{New: func() any { return &slab{Context: context.Background()} }}

// newRecord returns a record of the task's present slab. One that is not produced keeps its slab from being used again.
func (t *task) newRecord() *kgo.Record {
	s := t.slab
	if s == nil {
		s = slabs.Get().(*slab)
		clear(s.records[:])
		s.used = 0
		s.answered.Store(0)
		t.slab = s
	}
	r := &s.records[s.used]
	if s.used++; s.used == slabRecords {
		t.slab = nil // it is another task's as soon as all records are answered
	}
	r.Context = s
	return r
}

// recycle gives a record back that the producer has answered.
func recycle(r *kgo.Record) {
	if s, ok := r.Context.(*slab); ok && s.answered.Add(1) == slabRecords {
		slabs.Put(s)
	}
}
