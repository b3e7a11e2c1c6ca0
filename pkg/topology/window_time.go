package topology

import "github.com/streamworker/streamworker/pkg/topology/window"

// timeWindows aggregates in tumbling and hopping windows.
type timeWindows struct{ *windowing }

func (o timeWindows) process(m *message) error {
	clock, ok, err := o.begin(m)
	if !ok {
		return err
	}
	v, some, err := o.brings(m)
	if err != nil {
		return err
	}
	if !some {
		o.folding.p.NullValues++
	}
	now, taken := max(clock.Time, m.ts), false
	for start := o.win.FirstStart(m.ts); start <= m.ts; start += o.win.Advance {
		b := window.Bounds{Start: start, End: o.win.End(start)}
		if o.win.Closed(b.End, now) {
			continue
		}
		taken = true
		if !some {
			break
		}
		if err := o.add(m, b, &v); err != nil {
			return err
		}
	}
	if !taken {
		if err := o.tooLate(m); err != nil {
			return err
		}
	}
	return o.advance(m, clock, now)
}

// add takes what m brings into the window.
func (w *windowing) add(m *message, b window.Bounds, v *datum) error {
	was, err := w.value(m.key.raw, b)
	if err != nil {
		return err
	}
	return w.addTo(m, b, &was, v)
}

// addTo is add to a value that the window has, or is to begin with.
func (w *windowing) addTo(m *message, b window.Bounds, was *stored, v *datum) error {
	now := stored{ts: m.ts}
	if !was.value.null {
		now.ts = max(m.ts, was.ts)
	}
	var err error
	if now.value, err = w.folding.next(m, &was.value, v); err != nil {
		return err
	}
	return w.update(m, b, was.value, &now)
}
