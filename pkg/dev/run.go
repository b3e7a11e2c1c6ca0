package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// Looks at the instances, and bounds of what is waited for.
const (
	lookEvery  = 100 * time.Millisecond
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
)

// instances at the start.
const instances = 3

// run is the course of one trial run. Its fields belong to the goroutine that runs it.
type run struct {
	cfg    Config
	app    *application
	broker *broker
	dir    string // of the instances' states
	screen *Screen

	moves     *moves
	workers   []*worker // in the order of their start, ended ones too
	generator *generator
	output    *output
	failed    chan error // of the generator and of the reader of the output

	began       time.Time // of the stream; zero: not yet
	generation  int32     // of the group when the stream began
	told        int       // moves that the screen knows of
	toldFailing int
	gone        map[string]bool // instances whose end the screen knows of
	leftAt      time.Time
	joinedAt    time.Time
	lines, outs meter
	rebalances  int32 // since the stream began, until it was settled
	unread      int64 // input records that the group has not committed
}

// Run makes one trial run: until stop is closed or its time is over, and then until what was written is processed. Whether
// that is right is in the summary, which is there when the error is nil. The end of ctx ends a run at once, with the
// cause as error; then, too, it leaves nothing behind.
func Run(ctx context.Context, stop <-chan struct{}, cfg Config, screen *Screen) (_ Summary, err error) {
	if err := cfg.Validate(); err != nil {
		return Summary{}, err
	}
	b, err := openUnlessStopped(ctx, stop, cfg)
	if err != nil {
		return Summary{}, err
	}
	group := ""
	defer func() { err = errors.Join(err, b.close(group)) }()
	a, err := loadApplication(cfg, b)
	if err != nil {
		return Summary{}, err
	}
	group = a.group
	dir, err := os.MkdirTemp("", "streamworker-dev-")
	if err != nil {
		return Summary{}, fmt.Errorf("directory for the state: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.create(ctx, a.partitions, append(a.topology.Inputs(), a.topology.Outputs()...)...); err != nil {
		return Summary{}, err
	}
	r := &run{cfg: cfg, app: a, broker: b, dir: dir, screen: screen, moves: newMoves(), failed: make(chan error, 2), gone: make(map[string]bool)}
	defer screen.close()
	err = r.course(ctx, stop)
	if ends := r.stopAll(); err == nil {
		err = ends
	}
	if err != nil {
		return Summary{}, err
	}
	return r.summary(), nil
}

// openUnlessStopped opens the broker, which may take a while where it is a real one. It returns ErrStopped as soon as stop is closed.
func openUnlessStopped(ctx context.Context, stop <-chan struct{}, cfg Config) (*broker, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-stop:
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(nil); <-watching }()
	b, err := openBroker(ctx, cfg)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b, err
}

// course is what happens until everything is counted. The instances still run at its end.
func (r *run) course(ctx context.Context, stop <-chan struct{}) error {
	r.say("starting %d instances of %s", instances, r.app.name)
	for range instances {
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	all, err := r.until(ctx, stop, startLimit, r.calm())
	if err != nil {
		return err
	}
	if !all {
		return r.notStarted(stop)
	}
	if r.generator, err = newGenerator(r.broker, r.app); err != nil {
		return err
	}
	defer r.generator.client.Close()
	if r.output, err = newOutput(r.broker, r.app); err != nil {
		return err
	}
	reading, stopReading := context.WithCancel(ctx)
	read := make(chan struct{})
	go func() { defer close(read); r.report(r.output.run(reading)) }()
	defer func() { stopReading(); <-read }()
	if err := r.stream(ctx, stop); err != nil {
		return err
	}
	r.rebalances = r.newest() - r.generation
	return r.settle(ctx)
}

// stream writes lines: some at once, and when these are processed, the stream during which instances leave and join.
func (r *run) stream(ctx context.Context, stop <-chan struct{}) error {
	r.say("%d tasks on %d instances; some lines to begin with", r.app.tasks, instances)
	filled := make(chan struct{})
	filling, endFilling := context.WithCancel(ctx)
	defer endFilling()
	go func() { defer close(filled); r.report(r.generator.fill(filling)) }()
	processed := r.processed()
	ready, err := r.until(ctx, stop, 0, func(ctx context.Context) (bool, error) {
		select {
		case <-filled:
			return processed(ctx)
		default:
			return false, nil
		}
	})
	if !ready {
		endFilling()
	}
	<-filled
	switch {
	case err != nil:
		return err
	case !ready:
		return ErrStopped
	}
	r.moves.begin()
	r.generation, r.began = r.newest(), time.Now()
	r.say("the stream begins: %s lines per second", thousands(int64(r.cfg.Rate)))
	quit, written := make(chan struct{}), make(chan struct{})
	go func() { defer close(written); r.report(r.generator.run(ctx, quit)) }()
	_, err = r.until(ctx, stop, 0, r.over)
	close(quit)
	<-written
	if err != nil {
		return err
	}
	select {
	case err := <-r.failed: // the last lines were not acknowledged
		return err
	default:
		return nil
	}
}

// report takes the end of a goroutine of the run.
func (r *run) report(err error) {
	if err != nil {
		r.failed <- err
	}
}

// until looks at the instances until the condition holds, which it says, until stop is closed, or for so long; 0: no bound.
func (r *run) until(ctx context.Context, stop <-chan struct{}, limit time.Duration, condition func(context.Context) (bool, error)) (bool, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	begin := time.Now()
	for {
		if err := r.look(ctx); err != nil {
			return false, err
		}
		if holds, err := condition(ctx); holds || err != nil {
			return holds, err
		}
		if limit > 0 && time.Since(begin) > limit {
			return false, nil
		}
		select {
		case <-ticker.C:
		case <-stop:
			return false, nil
		case err := <-r.failed:
			return false, err
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// look shows what is new.
func (r *run) look(ctx context.Context) error {
	for _, w := range r.workers {
		ended, err := w.ended()
		if err != nil {
			return err
		}
		if ended && !r.gone[w.ID()] {
			r.gone[w.ID()] = true
			if w.Status().Left == control.LeftDrained {
				r.say("%s has handed everything over and is gone", w.ID())
			} else {
				r.say("%s is gone: left by its scale-down timeout", w.ID())
			}
		}
	}
	taken, failures := r.moves.since(r.told, r.toldFailing)
	for _, m := range taken {
		r.say("task %s moved: %s -> %s, gap %s", m.task, m.from, m.to, short(m.gap))
	}
	for _, f := range failures {
		r.say("%s", f)
	}
	r.told, r.toldFailing = r.told+len(taken), r.toldFailing+len(failures)
	if err := r.measure(ctx); err != nil {
		return err
	}
	r.screen.draw(r.frame(time.Now()))
	return nil
}

// measure asks how long the changelogs are of tasks that an instance has begun to learn.
func (r *run) measure(ctx context.Context) error {
	for _, w := range r.running() {
		sizes := make(map[string]int64)
		for _, l := range w.Status().Learning {
			size, known := w.sizes[l.Task]
			if !known {
				var err error
				if size, err = r.broker.size(ctx, r.app.changelogs(l.Task)); err != nil {
					return err
				}
			}
			sizes[l.Task] = size
		}
		w.sizes = sizes
	}
	return nil
}

// say adds to what the screen tells.
func (r *run) say(format string, args ...any) {
	at := time.Duration(0)
	if !r.began.IsZero() {
		at = time.Since(r.began)
	}
	r.screen.tell(at, fmt.Sprintf(format, args...))
}

// newest is the group's generation.
func (r *run) newest() int32 {
	newest := int32(0)
	for _, w := range r.workers {
		newest = max(newest, w.Status().Generation)
	}
	return newest
}

// running are the instances that have not ended.
func (r *run) running() []*worker {
	var out []*worker
	for _, w := range r.workers {
		if ended, _ := w.ended(); !ended {
			out = append(out, w)
		}
	}
	return out
}

// stopAll ends all instances and waits for them.
func (r *run) stopAll() error {
	for _, w := range r.workers {
		w.stop()
	}
	limit := time.After(stopLimit)
	var problems []error
	for _, w := range r.workers {
		select {
		case <-w.done:
			if _, err := w.ended(); err != nil {
				problems = append(problems, err)
			}
		case <-limit:
			return fmt.Errorf("%s has not ended %s after it was stopped", w.ID(), stopLimit)
		}
	}
	return errors.Join(problems...)
}
