package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// learners is how many instances there are before one of them leaves to the other all that it has.
const learners = 2

// learn lets one of two instances leave under a steady load. The other gets the state of its tasks from their changelogs while
// it processes its own half of the load: streamworker before it takes them, Kafka Streams once they have moved.
func (b *bench) learn(ctx context.Context) error {
	name := loadCase(fmt.Sprintf("one of %d leaves, changelog of %d records", learners, max(b.records, b.large)), b.large, b.rate)
	return b.alternate(ctx, "learn", name, b.actors(learners, b.records, learnBeside)...)
}

// learnBeside measures the instance that stays, from the moment at which the other one is told to leave. What its own half of the
// load costs it was seen before, and is taken off.
func learnBeside(ctx context.Context, s *scene) (map[string]float64, error) {
	leaver, stayer := s.all[0], s.all[learners-1]
	if _, err := stayer.running(ctx, s.b.partitions/learners); err != nil {
		return nil, err
	}
	used := stayer.proc().track(ctx)
	before, err := s.settle(ctx)
	used.stop()
	if err != nil {
		return nil, err
	}
	load := used.load(min(steady, s.b.settle))

	told := time.Now()
	used = stayer.proc().track(ctx)
	tasks, err := leaver.leave(ctx)
	if err == nil {
		_, err = stayer.running(ctx, s.b.partitions)
	}
	used.stop()
	if err != nil {
		return nil, err
	}
	if tasks == 0 {
		return nil, errors.New("the instance had no tasks when it left: nothing was measured")
	}
	records, done, err := stayer.learned(told)
	if err != nil {
		return nil, err
	}
	if records == 0 {
		return nil, fmt.Errorf("%s has read no changelog: nothing was measured", stayer.proc().name)
	}
	if err := pause(ctx, max(steady, s.b.observe-time.Since(told))); err != nil {
		return nil, err
	}
	f, err := s.stalls(before)
	if err != nil {
		return nil, err
	}
	took, end := done.Sub(told).Seconds(), used.until(done)
	cpu := max(end.cpu-used.until(told).cpu-load*took, 1.0/ticksPerSecond)
	f[besideTime.key], f[besideCPU.key], f[peakMemory.key], f[loadCPU.key] = took, cpu, end.peak, 100*load
	f[besidePerSec.key], f[besidePerCPU.key] = float64(records)/took, float64(records)/cpu
	f["learned_records"], f["tasks"] = float64(records), float64(tasks)
	return f, nil
}
