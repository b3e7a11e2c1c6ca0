package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// instances of the job from which one leaves.
const instances = 3

// scaleIn lets one of several instances leave under a steady load, and looks at the output. Kafka Streams is tried with
// both of its group protocols; it leaves the group when it is closed, and beats each second, as streamworker does.
func (b *bench) scaleIn(ctx context.Context) error {
	variants := map[string][]string{
		"classic protocol": {"group.protocol=classic", "heartbeat.interval.ms=1000"},
		"streams protocol": {"group.protocol=streams"},
	}
	var all []contender
	for _, name := range []string{"classic protocol", "streams protocol"} {
		all = append(all, b.leaver(peer{b}, name, variants[name]...))
	}
	all = append(all, b.leaver(worker{b}, ""))
	return b.alternate(ctx, "scalein", fmt.Sprintf("one of %d leaves, %s, %d records/s", instances, keysCase(b.large), b.rate), all...)
}

func (b *bench) leaver(s side, variant string, more ...string) contender {
	return contender{s.name(), variant, func(ctx context.Context) (_ map[string]float64, err error) {
		j := newJob(countJob, "", atLeastOnce, shortCommit)
		j.input, j.more = j.app+"-in", more
		if err := b.create(ctx, b.partitions, nil, j.input); err != nil {
			return nil, err
		}
		if err := b.createTopics(ctx, j, b.partitions); err != nil {
			return nil, err
		}
		scene := &scene{b: b, job: j, sent: make([]int64, b.large)}
		defer func() {
			scene.end()
			if removeErr := b.removeJob(ctx, j); err == nil {
				err = removeErr
			}
		}()
		return scene.play(ctx, s)
	}}
}

// scene is a job that runs in several instances under load.
type scene struct {
	b     *bench
	job   job
	all   []instance
	sent  []int64 // by key
	watch *watch
}

func (s *scene) end() {
	if s.watch != nil {
		s.watch.close()
	}
	for _, i := range s.all {
		i.proc().cmd.Process.Signal(stopSignal) //nolint:errcheck // it may have ended
	}
	for _, i := range s.all {
		i.proc().ended(stopLimit) //nolint:errcheck // then it was killed
	}
}

// play starts the instances before there is any state, so that they share the tasks evenly, fills in all keys, and
// lets the first instance leave under load.
func (s *scene) play(ctx context.Context, of side) (map[string]float64, error) {
	b := s.b
	for n := range instances {
		i, err := of.start(s.job, string(rune('a'+n)), 0)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, i)
		if _, err := i.running(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if s.watch, err = b.newWatch(ctx, s.job.output, b.large); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	producer, stop := context.WithCancel(ctx)
	defer stop()
	produced := make(chan error, 1)
	go func() { produced <- s.produce(producer, ctx) }()

	f, err := s.leave(ctx)
	stop()
	if sendErr := <-produced; sendErr != nil {
		return nil, sendErr
	}
	if err != nil {
		return nil, err
	}
	if err := s.settled(ctx); err != nil {
		return nil, err
	}
	return f, s.awaitCounts(ctx)
}

// leave measures the output before and after the first instance is told to leave.
func (s *scene) leave(ctx context.Context) (map[string]float64, error) {
	const steady = 10 * time.Second // measured before the leave; what comes before is for compilers and caches
	if err := pause(ctx, max(0, s.b.settle-steady)); err != nil {
		return nil, err
	}
	s.watch.begin()
	if err := pause(ctx, min(steady, s.b.settle)); err != nil {
		return nil, err
	}
	before, _, err := s.watch.period()
	if err != nil {
		return nil, err
	}
	s.watch.begin()
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
	gaps, slow, err := s.watch.period()
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		stall.key: millis(gaps[len(gaps)-1]), stallMedian.key: millis(gaps[(len(gaps)-1)/2]), slowest.key: millis(slow),
		stallBefore.key: millis(before[len(before)-1]), leaveTime.key: left.Sub(told).Seconds(), "tasks": float64(tasks),
	}, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fill counts each key once.
func (s *scene) fill(ctx context.Context) error {
	err := s.b.load(ctx, s.job.input, func(l *loader) error {
		for k := range s.sent {
			if err := l.send(ctx, &kgo.Record{Topic: s.job.input, Key: keyName(k), Value: make([]byte, valueBytes)}); err != nil {
				return err
			}
			s.sent[k]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.settled(ctx)
}

// settled waits until all input is committed.
func (s *scene) settled(ctx context.Context) error {
	ends, err := s.b.ends(ctx, s.job.input)
	if err != nil {
		return err
	}
	_, err = s.b.awaitCommitted(ctx, s.job.app, s.job.input, ends, s.all[1].proc(), nil)
	return err
}

// produce sends random keys at the rate until running ends, and waits until they are acknowledged.
func (s *scene) produce(running, ctx context.Context) error {
	return s.b.load(ctx, s.job.input, func(l *loader) error {
		draw, began, done := draws(len(s.sent)), time.Now(), 0
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-running.Done():
				return ctx.Err()
			case <-tick.C:
			}
			for due := int(time.Since(began).Seconds() * float64(s.b.rate)); done < due; done++ {
				k := draw()
				if err := l.send(ctx, &kgo.Record{Topic: s.job.input, Key: keyName(k), Value: make([]byte, valueBytes)}); err != nil {
					return err
				}
				s.sent[k]++
			}
		}
	})
}

// awaitCounts waits until the counts that came out are right: a commit may be seen before the last output.
func (s *scene) awaitCounts(ctx context.Context) error {
	limit := time.Now().Add(10 * time.Second)
	for {
		err := s.watch.counts(s.sent)
		if err == nil || time.Now().After(limit) {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
