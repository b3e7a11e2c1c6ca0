package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// leavers is of how many instances one leaves.
const leavers = 3

// scaleIn lets one of several instances leave under a steady load, and looks at the output. Kafka Streams leaves the group
// when it is closed.
func (b *bench) scaleIn(ctx context.Context) error {
	name := loadCase(fmt.Sprintf("one of %d leaves", leavers), b.large, b.rate)
	return b.alternate(ctx, "scalein", name, b.actors(leavers, b.large, leave)...)
}

// leave measures the output while the first instance leaves.
func leave(ctx context.Context, s *scene) (map[string]float64, error) {
	before, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	told := time.Now()
	tasks, err := s.all[0].leave(ctx)
	if err != nil {
		return nil, err
	}
	left := time.Now()
	if tasks == 0 {
		return nil, errors.New("the instance had no tasks when it left: nothing was measured")
	}
	if err := pause(ctx, s.b.observe-left.Sub(told)); err != nil {
		return nil, err
	}
	f, err := s.stalls(before)
	if err != nil {
		return nil, err
	}
	f[leaveTime.key], f["tasks"] = left.Sub(told).Seconds(), float64(tasks)
	return f, nil
}
