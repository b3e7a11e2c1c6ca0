package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pause is the time between two attempts.
const pause = 200 * time.Millisecond

// doubt is how long brokers are tried that close each connection: most likely the settings do not fit the port, but
// brokers that are stopping do it as well.
const doubt = 5 * time.Second

// Reach waits until a broker answers, at most for wait, so that a client may start a little before its Kafka.
// Otherwise it returns ErrUnreachable with the addresses tried, the last cause, and what to do. What waiting does not cure, such
// as wrong credentials, is not tried again.
func Reach(ctx context.Context, cl *kgo.Client, wait time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var last error
	var doubtful time.Time // since when connections are closed at once
	for {
		err := cl.Ping(bounded)
		if err == nil {
			return nil
		}
		// The end of the wait says less than what was seen before it.
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		text, final := meaning(err)
		switch {
		case text == "":
			doubtful = time.Time{}
		case doubtful.IsZero():
			doubtful = time.Now()
		}
		if final || text != "" && time.Since(doubtful) > doubt {
			return unreachable(cl, err)
		}
		if !sleep(bounded) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return unreachable(cl, last)
		}
	}
}

func unreachable(cl *kgo.Client, cause error) error {
	brokers, _ := cl.OptValue(kgo.SeedBrokers).([]string)
	at := strings.Join(brokers, ", ")
	if text, _ := meaning(cause); text != "" {
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, at, Explain(cause))
	}
	return fmt.Errorf("%w at %s: %w: check that the address is right, that a broker serves there and that no firewall is between", ErrUnreachable, at, cause)
}

// sleep tells whether ctx lasted for a pause.
func sleep(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Persist takes a step until it succeeds, as long as it fails for want of brokers that answer and that have not been missing for
// longer than wait: one may be restarting, or a connection break, between two requests. Then it returns ErrUnreachable. The step
// begins anew each time. Any other failure is returned as it is.
func Persist(ctx context.Context, cl *kgo.Client, wait time.Duration, log *slog.Logger, step func() error) error {
	var since time.Time
	for {
		err := step()
		if err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
		if since.IsZero() {
			since = time.Now()
			log.Warn("Kafka does not answer; trying again", "component", "kafka", "for", wait.String(), "error", err)
		}
		if time.Since(since) > wait {
			return unreachable(cl, err)
		}
		if !sleep(ctx) {
			return err
		}
	}
}

// passing tells whether err speaks of brokers that could not be asked, or not now. A topic that is not known is among it: on a broker
// that has not yet heard of it, it was created a moment ago. Whoever knows that a topic is missing has another error for that.
func passing(err error) bool {
	if _, final := meaning(err); final {
		return false
	}
	var answer *kerr.Error
	if errors.As(err, &answer) {
		return answer.Retriable
	}
	var network *net.OpError
	return errors.As(err, &network) || closed(err) || kgo.IsRetryableBrokerErr(err)
}

// Settled asks a coordinator again and again while it is being chosen or is reading what it has to know, as long as ctx lasts.
// On a new cluster the first question for a group makes the brokers choose one.
func Settled(ctx context.Context, question func() error) error {
	for {
		err := question()
		passing := errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.NotCoordinator)
		if !passing || !sleep(ctx) {
			return err
		}
	}
}
