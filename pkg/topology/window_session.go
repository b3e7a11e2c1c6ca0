package topology

import (
	"math"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// sessions aggregates in sessions.
type sessions struct{ *windowing }

func (o sessions) process(m *message) error {
	clock, ok, err := o.begin(m)
	if !ok {
		return err
	}
	v, some, err := o.brings(m)
	if err != nil {
		return err
	}
	now := max(clock.Time, m.ts)
	joined, err := o.find(m, clock.Time)
	if err != nil {
		return err
	}
	merged := window.Bounds{Start: m.ts, End: m.ts}
	for _, s := range joined {
		merged.Start, merged.End = min(merged.Start, s.Start), max(merged.End, s.End)
	}
	switch {
	case merged.End+o.win.Size+o.win.Grace < now:
		err = o.tooLate(m)
	case !some:
		o.folding.p.NullValues++
	default:
		err = o.join(m, merged, joined, &v)
	}
	if err != nil {
		return err
	}
	return o.advance(m, clock, now)
}

// join makes one session of those that m joins and of m itself.
func (o sessions) join(m *message, merged window.Bounds, joined []pane, v *datum) error {
	alone := merged == window.Bounds{Start: m.ts, End: m.ts}
	acc := nullDatum()
	for i := range joined {
		s := &joined[i]
		var err error
		if acc, err = o.merge(m, &acc, &s.value); err != nil {
			return err
		}
		if alone {
			continue
		}
		if err := o.update(m, s.Bounds, s.value, &stored{value: nullDatum(), ts: s.End}); err != nil {
			return err
		}
	}
	value, err := o.folding.next(m, &acc, v)
	if err != nil {
		return err
	}
	was := nullDatum()
	if alone && len(joined) > 0 {
		was = joined[0].value
	}
	return o.update(m, merged, was, &stored{value: value, ts: merged.End})
}

// find returns the sessions of m's key that are no further from m than the gap, in order of time. What is closed at a
// stream time is forgotten.
func (o sessions) find(m *message, streamTime int64) ([]pane, error) {
	least := m.ts - o.win.Size
	if streamTime >= 0 {
		open := streamTime - o.win.Size - o.win.Grace
		if !o.onClose {
			open++ // one that closes just now counts as closed; but its result must not be sent twice
		}
		least = max(least, open)
	}
	return o.walk(m.key.raw, least, math.MaxInt64, func(b window.Bounds) bool { return b.Start > m.ts+o.win.Size })
}
