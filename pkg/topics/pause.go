package topics

import (
	"context"
	"time"
)

// pause is the time between two attempts at something that is expected to work soon.
const pause = 200 * time.Millisecond

// sleep waits for d and tells whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
