package dev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// worker is one instance of the application.
type worker struct {
	*instance.Instance
	done chan struct{} // closed when it has ended, with err
	err  error

	leaving, stopped bool
	speed            meter            // records processed
	sizes            map[string]int64 // of the changelogs of the tasks that it learns, records, when it began to
}

// start begins to run an instance whose state is in a directory of its own under dir. It runs until stop, or until it has
// left: the end of ctx would make it stay a member of the group, which then cannot be deleted.
func start(ctx context.Context, a *application, id, dir string, joins bool, m *moves) (*worker, error) {
	cfg, err := a.config(id, filepath.Join(dir, id), joins)
	if err != nil {
		return nil, err
	}
	w := &worker{done: make(chan struct{}), sizes: make(map[string]int64)}
	w.Instance = instance.New(cfg, instance.Options{Logger: a.cfg.Logger, Events: m.events(id)})
	go func() {
		defer close(w.done)
		w.err = w.Run(context.WithoutCancel(ctx))
	}()
	return w, nil
}

// leave begins the live drain.
func (w *worker) leave(ctx context.Context) error {
	if err := w.Leave(ctx, leave.Default, "streamworker dev"); err != nil {
		return fmt.Errorf("%s: leave: %w", w.ID(), err)
	}
	w.leaving = true
	return nil
}

// ended says whether the instance has ended, and why if that is not as asked.
func (w *worker) ended() (bool, error) {
	select {
	case <-w.done:
	default:
		return false, nil
	}
	switch {
	case w.err == nil && w.stopped, errors.Is(w.err, leave.ErrDrained), w.leaving && errors.Is(w.err, leave.ErrTimedOut):
		return true, nil
	case w.err == nil:
		return true, fmt.Errorf("%s has ended", w.ID())
	}
	return true, fmt.Errorf("%s has ended: %w", w.ID(), w.err)
}

// stop ends the instance: its tasks commit, and it leaves the group.
func (w *worker) stop() {
	w.stopped = true
	w.Stop(config.Release)
}

// settled says whether the instance runs all that it has, and takes or learns nothing.
func (w *worker) settled() bool {
	ts := w.Tasks()
	if ts == nil || !w.Ready() {
		return false
	}
	for _, t := range ts.Tasks {
		if t.Phase != handover.Running && t.Phase != handover.Standby {
			return false
		}
	}
	return true
}

// progress is how much of the state of a task that it learns the instance has, in percent of the changelog as it was
// when the learning began: by its own account of how far it is behind.
func (w *worker) progress(l control.Learning) int {
	size := w.sizes[l.Task]
	switch {
	case l.Ready:
		return 100
	case l.Lag < 0 || size <= 0:
		return 0
	}
	return int(min(99, max(0, 100*(size-l.Lag)/size)))
}

// meter turns a count into a rate over the last second or so.
type meter struct {
	at     []time.Time
	counts []int64
}

const metered = time.Second

func (m *meter) perSecond(count int64, now time.Time) float64 {
	m.at, m.counts = append(m.at, now), append(m.counts, count)
	for len(m.at) > 2 && now.Sub(m.at[1]) >= metered {
		m.at, m.counts = m.at[1:], m.counts[1:]
	}
	passed := now.Sub(m.at[0]).Seconds()
	if passed <= 0 {
		return 0
	}
	return float64(count-m.counts[0]) / passed
}
