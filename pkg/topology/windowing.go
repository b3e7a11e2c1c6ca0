package topology

import (
	"fmt"
	"math"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// sending is how many results of closed windows are looked up at a time.
const sending = 256

// windowing is what the aggregates of all kinds of windows have in common. All that it knows of time is in the store, so that
// it goes where the store goes, and is taken back with a bad record; the lower bounds save look-ups only.
type windowing struct {
	*folding
	windowRows
	next    operator
	late    operator // what is done with late records; nil: nothing
	old     bool
	onClose bool // results are sent on once a window is closed

	out       message
	unsent    bound  // of the ends of windows with results to be sent
	committed *int64 // emit: commit: stream time at the last commit; rows that have changed since must stay until the next
}

const unknownTime = math.MinInt64

func newWindowing(c *chain, s *aggregateStep, next operator) *windowing {
	w := &windowing{
		folding: newFolding(c, s), windowRows: newWindowRows(c, &s.store), next: next, old: c.seg.old, onClose: s.onClose,
	}
	if s.late != nil {
		w.late = s.late.start(c, end{})
	}
	w.unsent = unknownBound(c.p)
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

// update sets the value of a window and sends the result on, unless that is done when it is closed.
func (w *windowing) update(m *message, b window.Bounds, was datum, now *stored) error {
	if err := w.set(m.key.raw, b, now); err != nil {
		return err
	}
	if w.onClose {
		w.unsent.lower(b.End, w.folding.p)
		return nil
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
	return w.expire(w.win.Expiry(now))
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
			w.unsent.raise(next, w.folding.p)
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
