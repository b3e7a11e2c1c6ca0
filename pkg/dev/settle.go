package dev

import (
	"context"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
)

// How long nothing may happen before what is missing counts as missing.
const (
	processPatience = 20 * time.Second // without a commit
	failingPatience = 3 * time.Second  // while a task cannot go on
	readPatience    = 10 * time.Second // without a record
	markerPatience  = 2 * time.Second  // likewise, where the last offsets may be those of transactions' markers
)

// settle waits until all lines are processed and all output is read, or nothing happens any more.
func (r *run) settle(ctx context.Context) error {
	r.say("the stream ends after %s lines: what is under way is finished", thousands(r.generator.written()))
	if _, err := r.until(ctx, nil, 0, r.processed()); err != nil {
		return err
	}
	if len(r.output.topics) == 0 {
		return nil
	}
	ends, err := r.broker.ends(ctx, r.output.topics)
	if err != nil {
		return err
	}
	patience := readPatience
	if r.app.guarantee == config.ExactlyOnce {
		patience = markerPatience
	}
	still := stillness{}
	_, err = r.until(ctx, nil, 0, func(context.Context) (bool, error) {
		return r.output.reached(ends) || still.lasts(r.output.read()) > patience, nil
	})
	return err
}

// processed says whether all records of the inputs and the repartition topics are committed, or nothing more will be.
func (r *run) processed() func(context.Context) (bool, error) {
	inputs, internal := stillness{}, stillness{}
	return func(ctx context.Context) (bool, error) {
		var err error
		if r.unread, err = r.broker.behind(ctx, r.app.group, r.app.topology.Inputs()); err != nil {
			return false, err
		}
		between, err := r.broker.behind(ctx, r.app.group, r.app.internal())
		if err != nil {
			return false, err
		}
		patience := processPatience + 2*r.app.commits
		if r.failing() {
			patience = failingPatience
		}
		rests := min(inputs.lasts(r.unread), internal.lasts(between))
		switch {
		case r.unread+between == 0, rests > patience:
			r.unread += between
			return true, nil
		case r.unread == 0 && r.app.guarantee == config.ExactlyOnce && rests > markerPatience+2*r.app.commits:
			return true, nil // what is left are the markers of transactions
		}
		return false, nil
	}
}

// stillness measures for how long a number has not changed.
type stillness struct {
	number int64
	since  time.Time
}

func (s *stillness) lasts(number int64) time.Duration {
	now := time.Now()
	if s.since.IsZero() || number != s.number {
		s.number, s.since = number, now
	}
	return now.Sub(s.since)
}
