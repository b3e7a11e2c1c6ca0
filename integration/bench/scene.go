package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// scene is a count that runs in several instances under load.
type scene struct {
	b     *bench
	side  side
	job   job
	all   []instance
	sent  []int64 // by key
	watch *watch
}

// act is what is done and measured under the load of a scene.
type act func(ctx context.Context, s *scene) (map[string]float64, error)

// actor plays an act with so many instances, after so many records were counted. more are properties of Kafka Streams.
func (b *bench) actor(of side, variant string, instances, records int, play act, more ...string) contender {
	return contender{of.name(), variant, func(ctx context.Context) (_ map[string]float64, err error) {
		j := newJob(countJob, "", atLeastOnce, shortCommit)
		j.input, j.more = j.app+"-in", more
		if err := b.create(ctx, b.partitions, nil, j.input); err != nil {
			return nil, err
		}
		if err := b.createTopics(ctx, j, b.partitions); err != nil {
			return nil, err
		}
		s := &scene{b: b, side: of, job: j, sent: make([]int64, b.large)}
		defer func() {
			s.end()
			if removeErr := b.removeJob(ctx, j); err == nil {
				err = removeErr
			}
		}()
		return s.play(ctx, instances, records, play)
	}}
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

// play starts the instances before there is any state, so that they share the tasks evenly, and counts records of all
// keys. Then the act is played under load, and what came out is compared with what was sent.
func (s *scene) play(ctx context.Context, instances, records int, play act) (map[string]float64, error) {
	b := s.b
	for range instances {
		i, err := s.start()
		if err != nil {
			return nil, err
		}
		if _, err := i.running(ctx, 0); err != nil {
			return nil, err
		}
	}
	var err error
	if s.watch, err = b.newWatch(ctx, s.job.output, b.large); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, records); err != nil {
		return nil, err
	}
	producer, stop := context.WithCancel(ctx)
	defer stop()
	produced := make(chan error, 1)
	go func() { produced <- s.produce(producer, ctx) }()

	f, err := play(ctx, s)
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

// start starts one more instance.
func (s *scene) start() (instance, error) {
	i, err := s.side.start(s.job, string(rune('a'+len(s.all))), 0)
	if err == nil {
		s.all = append(s.all, i)
	}
	return i, err
}

// steady is the time that is measured before anything happens, and at least after it.
const steady = 10 * time.Second

// settle lets the load go on, for compilers and caches, and returns the longest stall of its last seconds. Then a new
// period begins.
func (s *scene) settle(ctx context.Context) (time.Duration, error) {
	if err := pause(ctx, max(0, s.b.settle-steady)); err != nil {
		return 0, err
	}
	s.watch.begin()
	if err := pause(ctx, min(steady, s.b.settle)); err != nil {
		return 0, err
	}
	gaps, _, err := s.watch.period()
	s.watch.begin()
	if err != nil {
		return 0, err
	}
	return gaps[len(gaps)-1], nil
}

// stalls are the figures of the period, as a consumer of the output sees it.
func (s *scene) stalls(before time.Duration) (map[string]float64, error) {
	gaps, slow, err := s.watch.period()
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		stall.key: millis(gaps[len(gaps)-1]), stallMedian.key: millis(gaps[(len(gaps)-1)/2]), slowest.key: millis(slow),
		stallBefore.key: millis(before),
	}, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fill counts each key once, and then random ones, until these are so many records.
func (s *scene) fill(ctx context.Context, records int) error {
	err := s.b.load(ctx, s.job.input, func(l *loader) error {
		draw := draws(len(s.sent))
		for n := range max(records, len(s.sent)) {
			k := n
			if n >= len(s.sent) {
				k = draw()
			}
			if err := s.send(ctx, l, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.settled(ctx)
}

func (s *scene) send(ctx context.Context, l *loader, key int) error {
	s.sent[key]++
	return l.send(ctx, &kgo.Record{Topic: s.job.input, Key: keyName(key), Value: make([]byte, valueBytes)})
}

// settled waits until all input is committed.
func (s *scene) settled(ctx context.Context) error {
	ends, err := s.b.ends(ctx, s.job.input)
	if err != nil {
		return err
	}
	last := s.all[len(s.all)-1] // it never leaves
	_, err = s.b.awaitCommitted(ctx, s.job.app, s.job.input, ends, last.proc(), nil)
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
				if err := s.send(ctx, l, draw()); err != nil {
					return err
				}
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

// protocols are Kafka Streams' ways to form a group, by name; both are tried. Heartbeats are as frequent as streamworker's.
var protocols = []struct {
	name       string
	properties []string
}{
	{"classic protocol", []string{"group.protocol=classic", "heartbeat.interval.ms=1000"}},
	{"streams protocol", []string{"group.protocol=streams"}},
}

// actors play an act on both sides.
func (b *bench) actors(instances, records int, play act, more ...string) []contender {
	var all []contender
	for _, p := range protocols {
		all = append(all, b.actor(peer{b}, p.name, instances, records, play, append(p.properties[:len(p.properties):len(p.properties)], more...)...))
	}
	return append(all, b.actor(worker{b}, "", instances, records, play))
}

func loadCase(what string, keys, rate int) string {
	return fmt.Sprintf("%s, %s, %d records/s", what, keysCase(keys), rate)
}
