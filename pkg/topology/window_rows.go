package topology

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// expiring bounds the rows that one record makes a store delete because their time is over.
const expiring = 64

// entryValue is the value of entries by end. It is not empty, as not all that read topics tell that from a null.
var entryValue = []byte{1}

// windowRows are the rows of a store with windows. The lower bound saves look-ups only.
type windowRows struct {
	rows
	win      window.Spec
	row, buf []byte // key and value being written
	present  bound  // of the ends of all windows
}

func newWindowRows(c *chain, s *StoreSpec) windowRows {
	return windowRows{rows: c.rows(s), win: *s.Window, present: unknownBound(c.p)}
}

// value returns the value of a window, null if there is none.
func (w *windowRows) value(key []byte, b window.Bounds) (stored, error) {
	w.row = w.win.AppendRow(w.row[:0], key, b)
	row, ok, err := w.get(w.row)
	if err != nil {
		return stored{}, err
	}
	return w.spec.parse(row, ok, &w.p.slabs)
}

// set writes the value of a window; null deletes it.
func (w *windowRows) set(key []byte, b window.Bounds, v *stored) error {
	if err := v.value.encode(w.spec.Value, &w.p.slabs); err != nil {
		return fault{err}
	}
	if v.value.null {
		return w.drop(key, b)
	}
	w.present.lower(b.End, w.p)
	w.row = w.win.AppendRow(w.row[:0], key, b)
	w.buf = append(binary.BigEndian.AppendUint64(w.buf[:0], uint64(v.ts)), v.value.raw...)
	if err := w.put(w.row, w.buf); err != nil || !w.win.ByKey() {
		return err
	}
	w.row = window.AppendEnd(w.row[:0], key, b)
	if _, there, err := w.get(w.row); err != nil || there {
		return err
	}
	return w.put(w.row, entryValue)
}

// drop deletes a window.
func (w *windowRows) drop(key []byte, b window.Bounds) error {
	w.row = w.win.AppendRow(w.row[:0], key, b)
	if err := w.remove(w.row); err != nil || !w.win.ByKey() {
		return err
	}
	w.row = window.AppendEnd(w.row[:0], key, b)
	return w.remove(w.row)
}

// pane is a window that is there.
type pane struct {
	window.Bounds
	stored
}

// walk returns the windows of a key, whose rows are together, from a time on and before another one, in order of time: for sessions
// by their end, else by their start. It ends before the first one that is too far, if that is not nil.
func (w *windowRows) walk(key []byte, from, to int64, far func(window.Bounds) bool) (found []pane, err error) {
	prefix := window.AppendKeyRows(nil, key)
	first := binary.BigEndian.AppendUint64(slices.Clone(prefix), uint64(max(0, from)))
	behind := binary.BigEndian.AppendUint64(prefix, uint64(max(0, to)))
	var bad error
	err = w.scan(first, behind, func(row, value []byte) bool {
		p := pane{}
		var ok bool
		if _, p.Bounds, ok = w.win.ParseRow(row); !ok {
			bad = w.spec.corrupt(row)
			return false
		}
		if far != nil && far(p.Bounds) {
			return false
		}
		if p.stored, bad = w.spec.parse(value, true, &w.p.slabs); bad != nil {
			return false
		}
		found = append(found, p)
		return true
	})
	if bad != nil {
		err = bad
	}
	return found, err
}

// expire deletes windows with ends up to over, a bounded number of them.
func (w *windowRows) expire(over int64) error {
	if !w.present.reached(over, w.p) {
		return nil
	}
	old, next, err := w.ended(w.fromEnd(nil, max(w.present.time, 0)), over, expiring)
	if err != nil {
		return err
	}
	for i := range old {
		if err := w.drop(old[i].key, old[i].Bounds); err != nil {
			return err
		}
	}
	w.present.raise(next, w.p)
	return nil
}

// ended is a window that is over.
type ended struct {
	window.Bounds
	row, key []byte // key is a part of row
}

// fromEnd appends the key of the first row by time of windows with this end or a later one.
func (w *windowRows) fromEnd(b []byte, end int64) []byte {
	if w.win.ByKey() {
		return window.AppendFromEnd(b, max(0, end))
	}
	return window.AppendFromStart(b, max(0, end-w.win.Size))
}

// ended finds windows with ends up to last, from a row on, and what the next end is at least.
func (w *windowRows) ended(from []byte, last int64, most int) (found []ended, next int64, err error) {
	next = math.MaxInt64
	var bad []byte
	err = w.scan(from, []byte{from[0] + 1}, func(row, _ []byte) bool {
		row = slices.Clone(row)
		key, b, ok := w.win.ParseRow(row)
		if !ok {
			bad = row
			return false
		}
		if b.End > last || len(found) == most {
			next = b.End
			return false
		}
		found = append(found, ended{b, row, key})
		return true
	})
	if err != nil {
		return nil, 0, err
	}
	if bad != nil {
		return nil, 0, w.spec.corrupt(bad)
	}
	return found, next, nil
}
