package main

import (
	"context"
	"fmt"
	"time"
)

// joined is how many instances there are before one more joins.
const joined = 2

// join lets an instance with an empty directory join a group that works under a steady load, until it runs its share of
// the tasks. Its tasks' state is learned meanwhile: by warm-up replicas of Kafka Streams, all at once, with the shortest
// interval in which it looks whether they are ready. Its streams protocol, as of 4.4, has none: it moves the tasks at once.
func (b *bench) join(ctx context.Context) error {
	if b.partitions <= joined {
		return fmt.Errorf("%d partitions are too few for one of %d instances to get a share", b.partitions, joined+1)
	}
	name := loadCase(fmt.Sprintf("one joins %d, changelog of %d records", joined, max(b.records, b.large)), b.large, b.rate)
	return b.alternate(ctx, "join", name, b.actors(joined, b.records, joinOne,
		fmt.Sprintf("max.warmup.replicas=%d", b.partitions), "probing.rebalance.interval.ms=60000")...)
}

// joinOne measures the output, and the new instance, from its start.
func joinOne(ctx context.Context, s *scene) (map[string]float64, error) {
	before, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	i, err := s.start()
	if err != nil {
		return nil, err
	}
	began := i.proc().began
	used := i.proc().track(ctx)
	ready, err := i.running(ctx, s.b.partitions/len(s.all))
	used.stop()
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, max(steady, s.b.observe-time.Since(began))); err != nil {
		return nil, err
	}
	f, err := s.stalls(before)
	if err != nil {
		return nil, err
	}
	records, warm, err := i.learned(began)
	if err != nil {
		return nil, err
	}
	if records == 0 {
		return nil, fmt.Errorf("%s runs its share and has read no changelog: nothing was measured", i.proc().name)
	}
	learning, sharing := used.until(warm), used.until(ready)
	f[joinTime.key], f[joinCPU.key], f[peakMemory.key] = ready.Sub(began).Seconds(), sharing.cpu, sharing.peak
	f[learnTime.key], f[learnCPU.key] = warm.Sub(began).Seconds(), learning.cpu
	f[learnPerSec.key], f[learnPerCPU.key] = float64(records)/warm.Sub(began).Seconds(), float64(records)/max(learning.cpu, 1.0/ticksPerSecond)
	f["learned_records"] = float64(records)
	return f, nil
}

// trackEvery is how often it is looked what a process has used.
const trackEvery = 50 * time.Millisecond

// track is what a process has used in the course of time.
type track struct {
	stop func()
	all  []usage // to be read after the stop
}

// track begins to look, until it is stopped or the process ends.
func (p *process) track(ctx context.Context) *track {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	t := &track{stop: func() { cancel(); <-done }}
	go func() {
		defer close(done)
		for {
			u, err := p.used()
			if err != nil {
				return // it has ended
			}
			t.all = append(t.all, u)
			if pause(ctx, trackEvery) != nil {
				return
			}
		}
	}()
	return t
}

// load is how many CPU seconds were used a second in the last so much time.
func (t *track) load(over time.Duration) float64 {
	if len(t.all) == 0 {
		return 0
	}
	last := t.all[len(t.all)-1]
	first := t.until(last.at.Add(-over))
	if took := last.at.Sub(first.at).Seconds(); took > 0 {
		return (last.cpu - first.cpu) / took
	}
	return 0
}

// until is what was used at a time: as it was first seen from then on, or seen last.
func (t *track) until(at time.Time) usage {
	var u usage
	for _, u = range t.all {
		if !u.at.Before(at) {
			break
		}
	}
	return u
}
