package instance

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topics"
)

// inputRacks knows which racks have replicas of the input, for the time in which this instance leads the group.
type inputRacks struct {
	admin  *kgo.Client
	topics []string
	log    *slog.Logger
	known  atomic.Pointer[map[string][][]string]
}

// Replicas are moved by an operator, so racks change seldom.
const (
	racksAgain   = 10 * time.Minute
	racksTimeout = 10 * time.Second
)

// refresh asks the brokers. What was known stays if they do not answer: racks are a preference only.
func (r *inputRacks) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, racksTimeout)
	defer cancel()
	known, err := topics.Racks(ctx, r.admin, r.topics)
	if err != nil {
		r.log.Warn("the racks of the input are not known: tasks may be given to instances in other racks", "error", err)
		return
	}
	r.known.Store(&known)
}

// run refreshes from time to time until ctx ends.
func (r *inputRacks) run(ctx context.Context) {
	tick := time.NewTicker(racksAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.refresh(ctx)
		}
	}
}

// of are the racks with replicas of a partition, nil if none are known.
func (r *inputRacks) of(topic string, partition int32) []string {
	known := r.known.Load()
	if known == nil || int(partition) >= len((*known)[topic]) {
		return nil
	}
	return (*known)[topic][partition]
}
