package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// restoring is a side's job with a changelog that was written for it and an input that is empty but for probes.
type restoring struct {
	side   side
	job    job
	counts []int64 // by key, as the changelog has them
	size   int64   // records in the changelog
	local  bool    // an instance has its state on disk, as of an orderly stop
}

// restoringJobs writes the changelogs the first time.
func (b *bench) restoringJobs(ctx context.Context) ([]*restoring, error) {
	if b.restores != nil {
		return b.restores, nil
	}
	var all []*restoring
	for _, s := range b.sides() {
		r := &restoring{side: s, job: newJob(countJob, "", atLeastOnce, shortCommit)}
		r.job.input = r.job.app + "-in"
		if err := b.create(ctx, b.partitions, nil, r.job.input); err != nil {
			return nil, err
		}
		if err := b.createTopics(ctx, r.job, b.partitions); err != nil {
			return nil, err
		}
		var err error
		if r.counts, err = b.fillChangelog(ctx, s, r.job.changelog(), b.large); err != nil {
			return nil, err
		}
		r.size = int64(b.records)
		all = append(all, r)
	}
	b.restores = all
	return all, nil
}

// restore starts an instance alone with an empty directory, until it runs.
func (b *bench) restore(ctx context.Context) error {
	jobs, err := b.restoringJobs(ctx)
	if err != nil {
		return err
	}
	var both []contender
	for _, r := range jobs {
		both = append(both, contender{r.side.name(), "", func(ctx context.Context) (map[string]float64, error) { return b.restoreOnce(ctx, r) }})
	}
	return b.alternate(ctx, "restore", fmt.Sprintf("%s, changelog of %d records", keysCase(b.large), b.records), both...)
}

func (b *bench) restoreOnce(ctx context.Context, r *restoring) (map[string]float64, error) {
	r.local = false
	if err := b.removeState(r.job); err != nil {
		return nil, err
	}
	i, ready, err := b.up(ctx, r.side, r.job, 0)
	if err != nil {
		return nil, err
	}
	defer i.proc().kill()
	end, err := i.proc().used()
	if err != nil {
		return nil, err
	}
	want := r.size
	if err := b.probe(ctx, r, i); err != nil {
		return nil, err
	}
	if err := i.proc().stop(); err != nil {
		return nil, err
	}
	r.local = true
	records, took, err := i.restored()
	if err != nil {
		return nil, err
	}
	if records != want {
		return nil, fmt.Errorf("wrong results: %d records were restored, the changelog has %d", records, want)
	}
	f := b.figures(i.proc().began, i.proc().began, end)
	f[startTime.key] = ready.Sub(i.proc().began).Seconds()
	f[ownPerSec.key] = float64(records) / took.Seconds()
	return f, nil
}

// probes is how many keys are looked at after a restore.
const probes = 1000

// probe counts one more record of some keys, and compares what comes out with what was restored.
func (b *bench) probe(ctx context.Context, r *restoring, i instance) error {
	from, err := b.ends(ctx, r.job.output)
	if err != nil {
		return err
	}
	n := min(probes, b.large)
	err = b.load(ctx, r.job.input, func(l *loader) error {
		for k := range n {
			if err := l.send(ctx, &kgo.Record{Topic: r.job.input, Key: keyName(k * (b.large / n)), Value: []byte("x")}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	ends, err := b.ends(ctx, r.job.input)
	if err != nil {
		return err
	}
	if _, err := b.awaitCommitted(ctx, r.job.app, r.job.input, ends, i.proc(), nil); err != nil {
		return err
	}
	got := newTable(plainKeys(b.large))
	if err := b.read(ctx, r.job.output, from, got.take); err != nil {
		return err
	}
	for k := range n {
		key := k * (b.large / n)
		if r.counts[key]++; got.counts[key] != r.counts[key] {
			return fmt.Errorf("wrong results: the count of %s is %d after the restore, want %d", keyName(key), got.counts[key], r.counts[key])
		}
	}
	r.size += int64(n)
	return nil
}

// rest is the time that an instance has to come to rest before it counts as idle.
const rest = 5 * time.Second

// startup starts an instance alone where its state is, and leaves it idle.
func (b *bench) startup(ctx context.Context) error {
	jobs, err := b.restoringJobs(ctx)
	if err != nil {
		return err
	}
	var both []contender
	for _, r := range jobs {
		if !r.local {
			if _, err := b.restoreOnce(ctx, r); err != nil {
				return fmt.Errorf("making local state of %s: %w", r.side.name(), err)
			}
		}
		both = append(both, contender{r.side.name(), "", func(ctx context.Context) (map[string]float64, error) { return b.startOnce(ctx, r) }})
	}
	return b.alternate(ctx, "startup", keysCase(b.large)+" on disk", both...)
}

func (b *bench) startOnce(ctx context.Context, r *restoring) (map[string]float64, error) {
	i, ready, err := b.up(ctx, r.side, r.job, 0)
	if err != nil {
		return nil, err
	}
	defer i.proc().kill()
	started, err := i.proc().used()
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, rest); err != nil {
		return nil, err
	}
	before, err := i.proc().used()
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, b.idle); err != nil {
		return nil, err
	}
	after, err := i.proc().used()
	if err != nil {
		return nil, err
	}
	if err := i.proc().stop(); err != nil {
		return nil, err
	}
	records, _, err := i.restored()
	if err != nil {
		return nil, err
	}
	if records > 0 {
		return nil, fmt.Errorf("%d records were restored: the state was not on disk", records)
	}
	return map[string]float64{
		startTime.key: ready.Sub(i.proc().began).Seconds(), startCPU.key: started.cpu, idleMemory.key: after.resident,
		idleCPU.key: 100 * (after.cpu - before.cpu) / after.at.Sub(before.at).Seconds(),
	}, nil
}
