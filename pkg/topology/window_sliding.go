package topology

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// slidingWindows aggregates in sliding windows. There is one that each record ends, and one that begins just behind each
// record, as far as there is something in it; so a new record is to be taken into the windows there are around it, and it may
// make up to three more: the one that it ends, the one behind it, and the one behind the record before it.
type slidingWindows struct{ *windowing }

// around is what is known of a record's surroundings.
type around struct {
	starts   []int64 // of the windows there are
	before   stored  // the value of the windows that end before the record, of the latest one
	after    stored  // the value of those that end behind it, of the latest one, without the record
	previous int64   // timestamp of the record before, -1: none
	ends     bool    // the window that the record ends is there
	begins   bool    // the window that begins behind it is there
}

func (o slidingWindows) process(m *message) error {
	if !m.key.null && m.value.null {
		o.folding.p.NullValues++
		return nil
	}
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
		return nil
	}
	now := max(clock.Time, m.ts)
	taken := false
	if !o.win.Closed(m.ts+o.win.Size, now) {
		if taken, err = o.take(m, now, &v); err != nil {
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

// take brings m into its windows. It reports whether there was one that is not closed.
func (o slidingWindows) take(m *message, now int64, v *datum) (taken bool, err error) {
	panes, err := o.find(m, now)
	if err != nil {
		return false, err
	}
	into := func(b window.Bounds, was *stored) error {
		if o.win.Closed(b.End, now) {
			return nil
		}
		taken = true
		return o.addTo(m, b, was, v)
	}
	if m.ts < o.win.Size {
		return taken, o.takeEarly(m, panes, into)
	}
	a := around{before: stored{value: nullDatum()}, after: stored{value: nullDatum()}, previous: -1}
	for _, p := range slices.Backward(panes) {
		a.starts = append(a.starts, p.Start)
		switch {
		case p.Start == m.ts+1:
			a.begins = true
			continue
		case p.End > m.ts:
			if a.after.value.null {
				a.after = p.stored
			}
			if err := into(p.Bounds, &p.stored); err != nil {
				return taken, err
			}
			continue
		case p.End == m.ts:
			a.ends = true
			if err := into(p.Bounds, &p.stored); err != nil {
				return taken, err
			}
			if p.ts >= m.ts {
				return taken, nil // there was a record at this very time: all windows are there
			}
			a.previous = p.ts
			continue
		}
		a.before, a.previous = p.stored, p.ts
		break
	}
	if start := a.previous + 1; a.previous >= 0 && start+o.win.Size >= m.ts && !slices.Contains(a.starts, start) {
		if err := into(o.from(start), &stored{value: nullDatum()}); err != nil {
			return taken, err
		}
	}
	if !a.ends {
		was := stored{value: nullDatum()}
		if a.previous >= m.ts-o.win.Size && a.previous >= 0 {
			was = a.before
		}
		if err := into(o.from(m.ts-o.win.Size), &was); err != nil {
			return taken, err
		}
	}
	return taken, o.beginBehind(m, &a)
}

// takeEarly is for records whose window would begin before 0: they share the window from 0 on.
func (o slidingWindows) takeEarly(m *message, panes []pane, into func(window.Bounds, *stored) error) error {
	a := around{after: stored{value: nullDatum()}, previous: -1}
	shared := stored{value: nullDatum()}
	for _, p := range panes {
		a.starts = append(a.starts, p.Start)
		switch {
		case p.Start == 0:
			shared = p.stored
			if p.ts < m.ts {
				a.previous = p.ts
			}
		case p.Start <= m.ts:
			a.after = p.stored
			if err := into(p.Bounds, &p.stored); err != nil {
				return err
			}
		default:
			a.begins = true
		}
	}
	if a.after.value.null && !shared.value.null && shared.ts > m.ts {
		a.after = shared // all that is in it is behind m
	}
	if err := o.beginBehind(m, &a); err != nil {
		return err
	}
	if start := a.previous + 1; a.previous >= 0 && !slices.Contains(a.starts, start) {
		if err := into(o.from(start), &stored{value: nullDatum()}); err != nil {
			return err
		}
	}
	return into(o.from(0), &shared)
}

// beginBehind makes the window that begins behind m, if there are records in it.
func (o slidingWindows) beginBehind(m *message, a *around) error {
	if a.begins || a.after.value.null || a.after.ts <= m.ts {
		return nil
	}
	return o.update(m, o.from(m.ts+1), nullDatum(), &a.after)
}

func (o slidingWindows) from(start int64) window.Bounds {
	return window.Bounds{Start: start, End: o.win.End(start)}
}

// find returns the windows of m's key that may tell of records near it, in order of time; the timestamp of each is that of the
// last record in it. What has expired is not there.
func (o slidingWindows) find(m *message, now int64) ([]pane, error) {
	least := max(0, m.ts-2*o.win.Size, o.win.Expiry(now)+o.win.Retain+1-o.win.Size)
	return o.walk(m.key.raw, least, m.ts+2, nil)
}
