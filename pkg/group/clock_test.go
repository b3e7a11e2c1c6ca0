package group

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	const s = time.Second
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for _, c := range []struct {
		name   string
		events func(c *clock)
		want   time.Duration // after the start; below zero: nothing to lose
	}{
		{"not in the group", func(*clock) {}, -1},
		{"joining for the first time", func(c *clock) { c.joins(at(0)) }, -1},
		{"in the group", func(c *clock) { c.admitted(at(0)) }, 15 * s},
		{"a heartbeat answered", func(c *clock) { c.admitted(at(0)); c.answered(at(4 * s)) }, 19 * s},
		{"answers out of order", func(c *clock) { c.admitted(at(0)); c.answered(at(4 * s)); c.answered(at(2 * s)) }, 19 * s},
		{"a join that cannot be sent, heartbeats answered", func(c *clock) {
			c.admitted(at(0))
			c.joins(at(10 * s))
			c.joins(at(30 * s))
			c.answered(at(68 * s))
		}, 10*s + 59*s},
		{"a join that cannot be sent, no answers", func(c *clock) { c.admitted(at(0)); c.joins(at(10 * s)) }, 15 * s},
		{"a join that waits, heartbeats answered", func(c *clock) {
			c.admitted(at(0))
			c.joins(at(10 * s))
			c.waiting = true
			c.answered(at(68 * s))
		}, 83 * s},
		{"a join that waits, no answers", func(c *clock) { c.admitted(at(0)); c.joins(at(10 * s)); c.waiting = true }, 15 * s},
		{"a plan after a long join", func(c *clock) {
			c.admitted(at(0))
			c.joins(at(10 * s))
			c.waiting = true
			c.admitted(at(60 * s))
		}, 75 * s},
		{"the next join begins anew", func(c *clock) {
			c.admitted(at(0))
			c.joins(at(10 * s))
			c.admitted(at(20 * s))
			c.joins(at(30 * s))
			c.answered(at(80 * s))
		}, 30*s + 59*s},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := clock{session: 15 * s, heartbeat: s, rebalance: 60 * s}
			c.events(&k)
			got := k.deadline()
			if c.want < 0 && !got.IsZero() || c.want >= 0 && !got.Equal(at(c.want)) {
				t.Errorf("got %v after the start, want %v", got.Sub(start), c.want)
			}
		})
	}
}
