package tasks

import (
	"errors"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// flush follows the records that a task produced between two freezes. One flush takes records until it
// is sealed; when all of them are answered, done is called once, on the producer's goroutine.
type flush struct {
	pending atomic.Int64          // records without an answer, and one more until sealed
	failed  atomic.Pointer[error] // the first failure
	next    []atomic.Int64        // per store: the offset after its last changelog record; 0: none
	done    func()
	promise func(*kgo.Record, error) // the same function value for all records: no allocation for each
}

func newFlush(stores int) *flush {
	f := &flush{next: make([]atomic.Int64, stores)}
	f.pending.Store(1)
	f.promise = func(r *kgo.Record, err error) {
		recycle(r)
		f.answer(err)
	}
	return f
}

func (f *flush) answer(err error) {
	if err != nil {
		first := err // not the parameter, which would be allocated for each answer
		f.failed.CompareAndSwap(nil, &first)
	}
	if f.pending.Add(-1) == 0 {
		f.done()
	}
}

// errNoOffset: a taker, or this task when it is opened again, would not know how far it has to read.
var errNoOffset = errors.New("the broker has a change already, but no longer knows its offset")

// changelogPromise is the promise for records of one store's changelog.
func (f *flush) changelogPromise(store int) func(*kgo.Record, error) {
	return func(r *kgo.Record, err error) {
		switch {
		case err != nil:
		case r.Offset < 0:
			err = errNoOffset
		default:
			// Answers of one partition come in order.
			f.next[store].Store(r.Offset + 1)
		}
		recycle(r)
		f.answer(err)
	}
}

// seal ends the flush: done is called as soon as nothing is pending, maybe at once.
func (f *flush) seal(done func()) {
	f.done = done
	f.answer(nil)
}

// err is the first failure; nil if all records were written. Valid once done was called.
func (f *flush) err() error {
	if e := f.failed.Load(); e != nil {
		return *e
	}
	return nil
}
