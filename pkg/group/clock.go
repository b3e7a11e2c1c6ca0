package group

import "time"

// clock decides by our own time when the group may have removed us. Its zero value is that of an instance
// that is not in the group. Times of answers are those at which the request was sent, where that is known:
// the coordinator counts the session from when it saw the request, not from when we saw the answer.
type clock struct {
	session   time.Duration
	heartbeat time.Duration
	rebalance time.Duration

	member  bool      // we hold a lease that we may lose
	alive   time.Time // the coordinator has seen us since
	joining bool      // we have heard of a round, or began one, and have no plan for it
	heard   time.Time // when that began
	waiting bool      // our join has been sent for it and may be waiting at the coordinator
}

// admitted notes that a plan has arrived.
func (c *clock) admitted(now time.Time) {
	c.member, c.joining, c.waiting = true, false, false
	c.answered(now)
}

// answered notes that the coordinator has seen us at a time.
func (c *clock) answered(at time.Time) {
	if at.After(c.alive) {
		c.alive = at
	}
}

// joins notes that a join is about to be sent. Repeated joins belong to one round.
func (c *clock) joins(now time.Time) {
	if !c.joining {
		c.joining, c.heard = true, now
	}
	c.waiting = false
}

// over says whether the group may have removed us by now. A machine that was suspended finds that its
// monotonic clock stood still meanwhile, so the wall clock is asked too.
func (c *clock) over(now time.Time) bool {
	end := c.deadline()
	return !end.IsZero() && (!now.Before(end) || !now.Round(0).Before(end.Round(0)))
}

// deadline returns when the group may have removed us; zero if there is nothing to lose. It is the end of
// the session. While our join does not wait at the coordinator, it is also the end of the round's join
// phase, which may have begun one heartbeat before we heard of it. A member whose join waits is not
// removed; that the coordinator can be reached is proven by heartbeats meanwhile.
func (c *clock) deadline() time.Time {
	if !c.member {
		return time.Time{}
	}
	end := c.alive.Add(c.session)
	if c.joining && !c.waiting {
		if phase := c.heard.Add(c.rebalance - c.heartbeat); phase.Before(end) {
			end = phase
		}
	}
	return end
}
