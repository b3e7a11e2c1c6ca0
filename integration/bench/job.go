package main

import (
	"context"
	"errors"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// Guarantees, as streamworker's configuration names them.
const (
	atLeastOnce = "at_least_once"
	exactlyOnce = "exactly_once"
)

// Kinds of jobs.
const (
	countJob    = "count"
	windowedJob = "windowed"
	filterJob   = "filter"
)

// job is an application that either side can run.
type job struct {
	kind      string
	app       string // its name, and its group's
	input     string
	output    string
	guarantee string
	commit    time.Duration
	cache     int64    // bytes in which Kafka Streams may keep output back until a commit; 0: each update is sent on
	more      []string // more properties of Kafka Streams, name=value
}

// emit is when streamworker sends results on.
func (j job) emit() string {
	if j.cache > 0 {
		return "commit"
	}
	return "update"
}

// store is the name of the count's state on both sides, and so part of its changelog's name.
const store = "counts"

func (j job) changelog() string { return j.app + "-" + store + "-changelog" }

// newJob names a job that nothing is left of from before.
func newJob(kind, input, guarantee string, commit time.Duration) job {
	app := harness.Unique("bench-" + kind)
	return job{kind: kind, app: app, input: input, output: app + "-out", guarantee: guarantee, commit: commit}
}

// side runs jobs in its way.
type side interface {
	name() string
	// start starts an instance of a job with a state directory of its own. If expect is not 0, the instance is able
	// to tell when it has processed so many records.
	start(j job, id string, expect int) (instance, error)
	// stored is a count as it is in the changelog.
	stored(count int64, at time.Time) []byte
}

// instance is a process of a side.
type instance interface {
	proc() *process
	// running waits until it runs all of its tasks, and those are so many at least. It returns since when.
	running(ctx context.Context, tasks int) (time.Time, error)
	// processed waits until it has processed the expected number of records.
	processed(ctx context.Context) error
	// restored is how many records it has restored, as it says itself, and how long that took without the start of
	// its process. It is for an instance that has ended.
	restored() (records int64, took time.Duration, err error)
	// learned is how many records it has read of changelogs to come close to their ends before it was given the tasks,
	// and when it was there. An instance that was given them before it had their state was there when it had restored them.
	// What it said before since does not count.
	learned(since time.Time) (records int64, at time.Time, err error)
	// leave makes the instance give its tasks to the others and end, and waits until it has. It returns how many
	// tasks it had.
	leave(ctx context.Context) (tasks int, err error)
}

// up starts an instance alone and waits until it runs. Who gets it has to end it.
func (b *bench) up(ctx context.Context, s side, j job, expect int) (instance, time.Time, error) {
	i, err := s.start(j, "a", expect)
	if err != nil {
		return nil, time.Time{}, err
	}
	ready, err := i.running(ctx, 0)
	if err != nil {
		i.proc().kill()
		return nil, time.Time{}, err
	}
	return i, ready, nil
}

// createTopics makes what a job needs besides its input. The changelog is never compacted, so that it keeps its size.
func (b *bench) createTopics(ctx context.Context, j job, partitions int) error {
	if err := b.create(ctx, partitions, nil, j.output); err != nil {
		return err
	}
	if j.kind == filterJob {
		return nil
	}
	forever := "9223372036854775807"
	compact := "compact"
	return b.create(ctx, partitions, map[string]*string{"cleanup.policy": &compact, "min.compaction.lag.ms": &forever}, j.changelog())
}

// removeJob deletes the topics and the group of a job that has ended. It does so after an interrupt too.
func (b *bench) removeJob(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	_, err := b.admin.DeleteTopics(ctx, j.output, j.changelog(), j.app+"-control") // some may not be there
	_, groupErr := b.admin.DeleteGroups(ctx, j.app)
	return errors.Join(err, groupErr, b.removeState(j))
}
