package dev

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// lateLimit bounds the wait, with the stream going on, for moves that have not ended when the run's time is over.
const lateLimit = 30 * time.Second

// start runs one more instance.
func (r *run) start(ctx context.Context) error {
	joins := len(r.workers) >= instances
	w, err := start(ctx, r.app, fmt.Sprintf("worker-%d", len(r.workers)+1), r.dir, joins, r.moves)
	if err != nil {
		return err
	}
	r.workers = append(r.workers, w)
	return nil
}

// over lets instances leave and join when it is time, and says when the stream has lasted long enough: for the time
// that was asked for, and until no task moves.
func (r *run) over(ctx context.Context) (bool, error) {
	elapsed := time.Since(r.began)
	if r.cfg.LeaveAfter > 0 && r.leftAt.IsZero() && elapsed >= r.cfg.LeaveAfter {
		r.leftAt = time.Now()
		w := r.workers[1] // often the first one leads the group
		r.say("%s leaves: the others learn its tasks, then take them one by one", w.ID())
		if err := w.leave(ctx); err != nil {
			return false, err
		}
	}
	if r.cfg.JoinAfter > 0 && r.joinedAt.IsZero() && elapsed >= r.cfg.JoinAfter {
		r.joinedAt = time.Now()
		if err := r.start(ctx); err != nil {
			return false, err
		}
		r.say("%s joins: it learns tasks, then takes them", r.workers[len(r.workers)-1].ID())
	}
	if r.cfg.For == 0 || elapsed < r.cfg.For {
		return false, nil
	}
	rests, err := r.spread(ctx)
	return rests && r.moves.underWay() == 0 || r.failing() || elapsed > r.cfg.For+lateLimit, err
}

// failing says whether a task cannot go on at present.
func (r *run) failing() bool {
	for _, w := range r.running() {
		if w.Status().FailedTasks > 0 {
			return true
		}
	}
	return false
}

// spread says whether every task runs, each instance has some, and none is to move.
func (r *run) spread(context.Context) (bool, error) {
	sum, least, most := 0, r.app.tasks, 0
	for _, w := range r.running() {
		if w.leaving || !w.settled() {
			return false, nil
		}
		n := len(w.Status().Active)
		sum, least, most = sum+n, min(least, n), max(most, n)
	}
	return sum == r.app.tasks && (least > 0 || r.app.tasks < len(r.running())) && most-least <= r.app.factor, nil
}

// calmFor is how long the group must have been in one generation before the stream begins, so that what the start of
// the instances brought about is over.
const calmFor = 500 * time.Millisecond

// calm says whether the tasks are spread, and the group rests.
func (r *run) calm() func(context.Context) (bool, error) {
	still := stillness{}
	return func(ctx context.Context) (bool, error) {
		rests := still.lasts(int64(r.newest())) >= calmFor
		spread, err := r.spread(ctx)
		return spread && rests, err
	}
}

// ErrStopped is returned by Run when a run is stopped before the stream has begun.
var ErrStopped = errors.New("stopped before the stream began: there is nothing to count")

// notStarted is why the stream has not begun.
func (r *run) notStarted(stop <-chan struct{}) error {
	select {
	case <-stop:
		return ErrStopped
	default:
	}
	var why []string
	for _, w := range r.workers {
		s := w.Status()
		for _, f := range s.Failed {
			why = append(why, fmt.Sprintf("%s: task %s: %s", w.ID(), f.Task, f.Error))
		}
		why = append(why, fmt.Sprintf("%s is %s with %d tasks, learning %d", w.ID(), s.State, len(s.Active), len(s.Learning)))
	}
	return fmt.Errorf("the %d tasks do not run on all instances %s after the start: %s", r.app.tasks, startLimit, strings.Join(why, "; "))
}
