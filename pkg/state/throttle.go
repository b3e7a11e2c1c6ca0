package state

import "time"

// throttle is a token bucket that may go into debt: what was read is known only afterwards.
type throttle struct {
	rate   float64 // bytes per second; 0: no bound
	tokens float64
	last   time.Time
}

const throttleBurst = time.Second / 4

// spend takes n bytes.
func (t *throttle) spend(n int, now time.Time) {
	if t.rate > 0 {
		t.fill(now)
		t.tokens -= float64(n)
	}
}

// wait returns how long it takes until the debt is paid.
func (t *throttle) wait(now time.Time) time.Duration {
	if t.rate == 0 {
		return 0
	}
	t.fill(now)
	if t.tokens >= 0 {
		return 0
	}
	return time.Duration(-t.tokens / t.rate * float64(time.Second))
}

func (t *throttle) fill(now time.Time) {
	most := t.rate * throttleBurst.Seconds()
	if t.last.IsZero() {
		t.tokens = most
	} else if now.After(t.last) {
		t.tokens = min(most, t.tokens+t.rate*now.Sub(t.last).Seconds())
	}
	t.last = now
}
