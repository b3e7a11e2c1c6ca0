package topology

import (
	"math"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// CustomWindows are a store of a custom step in which values are by key and window. A window goes when the step's stream time is
// beyond its end by more than the retention. What holds for CustomRows holds for them too.
type CustomWindows struct {
	windowRows
	o *customOperator
}

// Get returns the value of a key in a window, and its timestamp in ms since the epoch.
func (w *CustomWindows) Get(key *Datum, of window.Bounds) (value Datum, ts int64, ok bool) {
	if raw := w.o.storeKey(w.spec, key); raw != nil {
		s, err := w.value(raw, of)
		w.o.storeFailed(err)
		return Datum(s.value), s.ts, err == nil && !s.value.null
	}
	return Datum(nullDatum()), 0, false
}

// Put sets the value of a key in a window, with the timestamp of the record; a null deletes it.
func (w *CustomWindows) Put(key *Datum, of window.Bounds, value *Datum) {
	raw := w.o.storeKey(w.spec, key)
	if raw == nil {
		return
	}
	for _, at := range []int64{of.Start, of.End} {
		if err := window.CheckTime(at); err != nil {
			w.o.storeFailed(fault{err})
			return
		}
	}
	w.o.storeFailed(w.set(raw, of, &stored{value: datum(*value), ts: w.o.ts}))
}

// Scan calls f for the windows of a key that end at a time or later, in order of their end, until it returns false. f may write
// to the store; what it writes is not seen.
func (w *CustomWindows) Scan(key *Datum, from int64, f func(of window.Bounds, value Datum, ts int64) bool) {
	raw := w.o.storeKey(w.spec, key)
	if raw == nil {
		return
	}
	found, err := w.walk(raw, from, math.MaxInt64, nil)
	w.o.storeFailed(err)
	for i := range found {
		if w.o.err != nil || !f(found[i].Bounds, Datum(found[i].value), found[i].ts) {
			return
		}
	}
}

// Ended calls f for the windows of all keys that have ended by a time, in order of their end and key, until it returns false. f may
// write to the store; whether it sees what it has written is not said.
func (w *CustomWindows) Ended(by int64, f func(key Datum, of window.Bounds, value Datum, ts int64) bool) {
	from := w.fromEnd(nil, 0)
	for w.o.err == nil {
		found, _, err := w.ended(from, by, scanned)
		w.o.storeFailed(err)
		for _, e := range found {
			key, err := decodeDatum(w.spec.Key, e.key, false)
			if err != nil {
				w.o.storeFailed(w.spec.corrupt(e.key))
				return
			}
			s, err := w.value(e.key, e.Bounds)
			w.o.storeFailed(err)
			if w.o.err != nil || !f(Datum(key), e.Bounds, Datum(s.value), s.ts) {
				return
			}
		}
		if len(found) < scanned {
			return
		}
		from = append(found[scanned-1].row, 0)
	}
}
