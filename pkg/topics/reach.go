package topics

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pause is the time between two attempts at something that is expected to work soon.
const pause = 200 * time.Millisecond

// Reach waits until a broker answers, at most for wait, so that an instance may start a little before its Kafka.
// Otherwise it returns ErrUnreachable with the addresses tried and the last cause. A broker that refuses the client
// (wrong credentials) is not asked again.
func Reach(ctx context.Context, cl *kgo.Client, wait time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var last error
	for {
		err := cl.Ping(bounded)
		if err == nil {
			return nil
		}
		// The end of the wait says less than what was seen before it.
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		if errors.Is(err, kerr.SaslAuthenticationFailed) {
			return unanswered(cl, "connecting", err)
		}
		if !sleep(bounded, pause) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return unanswered(cl, "connecting", last)
		}
	}
}

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
