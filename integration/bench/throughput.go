package main

import (
	"context"
	"fmt"
	"time"
)

// shortCommit is the commit interval wherever another one is not the point.
const shortCommit = 100 * time.Millisecond

// countCase names a case of the workload count, and the first part of it one of the floors.
func countCase(keys, guarantee string) string { return keys + ", " + guarantee }

func keysCase(keys int) string { return fmt.Sprintf("%d keys", keys) }

func (b *bench) sides() []side { return []side{peer{b}, worker{b}} }

// count sends each update on, under both guarantees.
func (b *bench) count(ctx context.Context) error {
	for _, keys := range []int{b.small, b.large} {
		in, err := b.events(ctx, keys, b.partitions)
		if err != nil {
			return err
		}
		for _, guarantee := range []string{atLeastOnce, exactlyOnce} {
			var both []contender
			for _, s := range b.sides() {
				both = append(both, contender{s.name(), "", func(ctx context.Context) (map[string]float64, error) {
					j := newJob(countJob, in.topic, guarantee, shortCommit)
					return b.throughput(ctx, s, j, b.partitions, in, func() error { return b.verifyCounts(ctx, j.output, plainKeys(len(in.counts)), in.counts, true) })
				}})
			}
			if err := b.alternate(ctx, "count", countCase(keysCase(keys), guarantee), both...); err != nil {
				return err
			}
		}
	}
	return nil
}

// cacheBytes lets Kafka Streams keep back what it updates between two commits.
const cacheBytes = 64 << 20

// cached lets output wait for the commit: Kafka Streams with its cache, streamworker with emit: commit. Each side is tried with
// several commit intervals. A run ends with an orderly stop, which commits, once everything is processed.
func (b *bench) cached(ctx context.Context) error {
	in, err := b.events(ctx, b.small, b.partitions)
	if err != nil {
		return err
	}
	var all []contender
	for _, interval := range b.commits {
		for _, s := range b.sides() {
			all = append(all, contender{s.name(), "commit each " + interval.String(), func(ctx context.Context) (map[string]float64, error) {
				j := newJob(countJob, in.topic, atLeastOnce, interval)
				j.cache = cacheBytes
				return b.untilStopped(ctx, s, j, in)
			}})
		}
	}
	return b.alternate(ctx, "cached", countCase(keysCase(b.small), atLeastOnce), all...)
}

// filter is a filter and a map of JSON, without state.
func (b *bench) filter(ctx context.Context) error {
	in, err := b.orders(ctx)
	if err != nil {
		return err
	}
	var both []contender
	for _, s := range b.sides() {
		both = append(both, contender{s.name(), "", func(ctx context.Context) (map[string]float64, error) {
			j := newJob(filterJob, in.topic, atLeastOnce, shortCommit)
			return b.throughput(ctx, s, j, b.partitions, in, func() error { return b.verifyOrders(ctx, j.output, in) })
		}})
	}
	return b.alternate(ctx, "filter", atLeastOnce, both...)
}

// manyTasks counts in one process with a task for each of many partitions.
func (b *bench) manyTasks(ctx context.Context) error {
	in, err := b.events(ctx, b.large, b.tasks)
	if err != nil {
		return err
	}
	var both []contender
	for _, s := range b.sides() {
		both = append(both, contender{s.name(), "", func(ctx context.Context) (map[string]float64, error) {
			j := newJob(countJob, in.topic, atLeastOnce, shortCommit)
			return b.throughput(ctx, s, j, b.tasks, in, func() error { return b.verifyCounts(ctx, j.output, plainKeys(len(in.counts)), in.counts, true) })
		}})
	}
	return b.alternate(ctx, "tasks", fmt.Sprintf("%d tasks, %s", b.tasks, keysCase(b.large)), both...)
}

// throughput lets one instance process an input from its beginning to its end.
func (b *bench) throughput(ctx context.Context, s side, j job, partitions int, in *input, verify func() error) (_ map[string]float64, err error) {
	if err := b.createTopics(ctx, j, partitions); err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := b.removeJob(ctx, j); err == nil {
			err = removeErr
		}
	}()
	i, ready, err := b.up(ctx, s, j, 0)
	if err != nil {
		return nil, err
	}
	defer i.proc().kill()
	profiled := b.profile(ctx, i)
	defer profiled()
	var half usage
	var halfDone int64
	_, err = b.awaitCommitted(ctx, j.app, in.topic, in.ends, i.proc(), func(committed int64) error {
		if committed < int64(b.records)/2 || halfDone > 0 {
			return nil
		}
		halfDone = committed
		half, err = i.proc().used()
		return err
	})
	if err != nil {
		return nil, err
	}
	end, err := i.proc().used()
	if err != nil {
		return nil, err
	}
	if err := i.proc().stop(); err != nil {
		return nil, err
	}
	f := b.figures(i.proc().began, ready, end)
	if rest := float64(int64(b.records) - halfDone); rest > 0 {
		f[warmPerSec.key] = rest / end.at.Sub(half.at).Seconds()
		f[warmPerCPU.key] = rest / max(end.cpu-half.cpu, 1.0/ticksPerSecond)
	}
	return f, verify()
}

// figures of a run that has processed all records.
func (b *bench) figures(began, ready time.Time, end usage) map[string]float64 {
	n := float64(b.records)
	return map[string]float64{
		perCPU.key: n / end.cpu, perSecond.key: n / end.at.Sub(ready).Seconds(), cpuTime.key: end.cpu,
		wallTime.key: end.at.Sub(began).Seconds(), startTime.key: ready.Sub(began).Seconds(), peakMemory.key: end.peak,
	}
}

// untilStopped is throughput where the commit interval may be longer than the run.
func (b *bench) untilStopped(ctx context.Context, s side, j job, in *input) (_ map[string]float64, err error) {
	if err := b.createTopics(ctx, j, b.partitions); err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := b.removeJob(ctx, j); err == nil {
			err = removeErr
		}
	}()
	i, ready, err := b.up(ctx, s, j, b.records)
	if err != nil {
		return nil, err
	}
	defer i.proc().kill()
	if err := i.processed(ctx); err != nil {
		return nil, err
	}
	before, err := i.proc().used()
	if err != nil {
		return nil, err
	}
	if err := i.proc().stop(); err != nil {
		return nil, err
	}
	// What the whole process used is known from the kernel once it has ended; its peak was read before.
	end := usage{at: time.Now(), cpu: i.proc().total(), peak: before.peak}
	committed, all, err := b.committed(ctx, j.app, in.topic, in.ends)
	if err != nil {
		return nil, err
	}
	if !all {
		return nil, fmt.Errorf("after an orderly stop %d of %d records are committed", committed, b.records)
	}
	return b.figures(i.proc().began, ready, end), b.verifyCounts(ctx, j.output, plainKeys(len(in.counts)), in.counts, false)
}
