package topology

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// expiring bounds the rows that one record makes a store delete because their time is over.
const expiring = 64

// sending is how many results of closed windows are looked up at a time.
const sending = 256

// windowing is what the aggregates of all kinds of windows have in common. All that it knows of time is in the store, so that
// it goes where the store goes, and is taken back with a bad record; the lower bounds save look-ups only.
type windowing struct {
	*folding
	rows
	win     window.Spec
	next    operator
	late    operator // what is done with late records; nil: nothing
	old     bool
	onClose bool // results are sent on once a window is closed

	row, buf  []byte // key and value being written
	out       message
	unsent    bound  // of the ends of windows with results to be sent
	present   bound  // of the ends of all windows
	committed *int64 // emit: commit: stream time at the last commit; rows that have changed since must stay until the next
}

// entryValue is the value of entries by end. It is not empty, as not all that read topics tell that from a null.
var entryValue = []byte{1}

const unknownTime = math.MinInt64

func newWindowing(c *chain, s *aggregateStep, next operator) *windowing {
	w := &windowing{
		folding: newFolding(c, s), rows: c.rows(&s.store), win: *s.store.Window, next: next, old: c.seg.old, onClose: s.onClose,
	}
	if s.late != nil {
		w.late = s.late.start(c, end{})
	}
	w.unsent, w.present = unknownBound(c.p), unknownBound(c.p)
	return w
}

// clock reads the store's clock.
func (w *windowing) clock() (window.Clock, error) {
	row, ok, err := w.get(window.ClockKey)
	if err != nil || !ok {
		return window.NewClock(), err
	}
	clock, ok := window.ParseClock(row)
	if !ok {
		return clock, w.spec.corrupt(row)
	}
	return clock, nil
}

// value returns the value of a window, null if there is none.
func (w *windowing) value(key []byte, b window.Bounds) (stored, error) {
	w.row = w.win.AppendRow(w.row[:0], key, b)
	row, ok, err := w.get(w.row)
	if err != nil {
		return stored{}, err
	}
	return w.spec.parse(row, ok, &w.folding.p.slabs)
}

// set writes the value of a window; null deletes it.
func (w *windowing) set(key []byte, b window.Bounds, v *stored) error {
	if err := v.value.encode(w.spec.Value, &w.folding.p.slabs); err != nil {
		return fault{err}
	}
	if v.value.null {
		return w.drop(key, b)
	}
	w.unsent.lower(b.End, w.folding.p)
	w.present.lower(b.End, w.folding.p)
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
func (w *windowing) drop(key []byte, b window.Bounds) error {
	w.row = w.win.AppendRow(w.row[:0], key, b)
	if err := w.remove(w.row); err != nil || !w.win.ByKey() {
		return err
	}
	w.row = window.AppendEnd(w.row[:0], key, b)
	return w.remove(w.row)
}

// update sets the value of a window and sends the result on, unless that is done when it is closed.
func (w *windowing) update(m *message, b window.Bounds, was datum, now *stored) error {
	if err := w.set(m.key.raw, b, now); err != nil || w.onClose {
		return err
	}
	return w.send(m, m.key, b, was, now)
}

// send hands a result on.
func (w *windowing) send(m *message, key datum, b window.Bounds, was datum, now *stored) error {
	value, err := w.of(now.value)
	if err != nil {
		return err
	}
	w.out = message{key: key, value: value, ts: now.ts, source: m.source, window: b}
	if w.old {
		if w.out.old, err = w.of(was); err != nil {
			return err
		}
	}
	return w.next.process(&w.out)
}

// begin reports whether m can be aggregated by time, with its key encoded and the clock as it was before.
func (w *windowing) begin(m *message) (clock window.Clock, ok bool, err error) {
	if m.key.null {
		w.folding.p.NullKeys++
		return clock, false, nil
	}
	if err := window.CheckTime(m.ts); err != nil {
		return clock, false, fault{err}
	}
	if err := m.key.encode(w.spec.Key, &w.folding.p.slabs); err != nil {
		return clock, false, fault{fmt.Errorf("key: %w", err)}
	}
	if clock, err = w.clock(); err != nil {
		return clock, false, err
	}
	if w.committed != nil && *w.committed == unknownTime {
		*w.committed = clock.Time // what there is at the beginning is committed
	}
	return clock, true, nil
}

// tooLate deals with a record that no window takes any more.
func (w *windowing) tooLate(m *message) error {
	w.folding.p.Late++
	if w.late == nil {
		return nil
	}
	w.out = *m
	return w.late.process(&w.out)
}

// advance sets the clock, sends on the results of windows that are closed by now, and deletes rows whose time is over.
func (w *windowing) advance(m *message, clock window.Clock, now int64) error {
	was := clock
	clock.Time = now
	if closed := w.win.LastClosed(now); w.onClose && closed > clock.Sent {
		if w.unsent.reached(closed, w.folding.p) {
			if err := w.sendClosed(m, clock.Sent, closed); err != nil {
				return err
			}
		}
		clock.Sent = closed
	}
	if clock != was {
		w.buf = clock.Append(w.buf[:0])
		if err := w.put(window.ClockKey, w.buf); err != nil {
			return err
		}
	}
	if w.committed != nil {
		now = min(now, *w.committed)
	}
	if over := w.win.Expiry(now); w.present.reached(over, w.folding.p) {
		return w.expire(over)
	}
	return nil
}

// sendClosed sends on the results of the windows with ends behind after and up to closed, in order of end and key.
func (w *windowing) sendClosed(m *message, after, closed int64) error {
	from := w.fromEnd(nil, after+1)
	for {
		ended, next, err := w.ended(from, closed, sending)
		if err != nil {
			return err
		}
		for i := range ended {
			if err := w.sendEnded(m, &ended[i]); err != nil {
				return err
			}
		}
		if len(ended) < sending {
			w.unsent = bound{next, w.folding.p.rollbacks}
			return nil
		}
		from = append(ended[sending-1].row, 0)
	}
}

// sendEnded sends on the result of a closed window. One that fails must not keep the others back, nor the record that has
// closed the window.
func (w *windowing) sendEnded(m *message, e *ended) error {
	v, err := w.value(e.key, e.Bounds)
	if err != nil {
		return err
	}
	key, err := decodeDatum(w.spec.Key, e.key, false)
	if err != nil {
		return w.spec.corrupt(e.key)
	}
	before := w.folding.p.mark()
	if err := w.send(m, key, e.Bounds, nullDatum(), &v); err != nil {
		return w.folding.p.failed(before, fmt.Errorf("result of window %s: %w", e.Bounds, err))
	}
	return nil
}

// expire deletes windows with ends up to over, a bounded number of them.
func (w *windowing) expire(over int64) error {
	old, next, err := w.ended(w.fromEnd(nil, max(w.present.time, 0)), over, expiring)
	if err != nil {
		return err
	}
	for i := range old {
		if err := w.drop(old[i].key, old[i].Bounds); err != nil {
			return err
		}
	}
	w.present = bound{next, w.folding.p.rollbacks}
	return nil
}

// ended is a window that is over.
type ended struct {
	window.Bounds
	row, key []byte // key is a part of row
}

// fromEnd appends the key of the first row by time of windows with this end or a later one.
func (w *windowing) fromEnd(b []byte, end int64) []byte {
	if w.win.ByKey() {
		return window.AppendFromEnd(b, max(0, end))
	}
	return window.AppendFromStart(b, max(0, end-w.win.Size))
}

// ended finds windows with ends up to last, from a row on, and what the next end is at least.
func (w *windowing) ended(from []byte, last int64, most int) (found []ended, next int64, err error) {
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
