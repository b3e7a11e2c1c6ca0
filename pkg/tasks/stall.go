package tasks

import (
	"errors"
	"time"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Bounds of the time between two attempts at what failed.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 30 * time.Second
)

// backoff is the time until the next attempt after a number of failures in a row.
func backoff(failures int) time.Duration {
	d := retryFirst
	for i := 1; i < failures && d < retryMost; i++ {
		d *= 2
	}
	return min(d, retryMost)
}

// stall is a record that cannot be processed, under `on_error: fail`. The task keeps what it has done up
// to it, goes on committing and can be handed over; it tries the record again from time to time.
type stall struct {
	err      error
	failures int
	until    time.Time
}

// clearStall says that the task goes on.
func (t *task) clearStall(a *processing) {
	if a.stall.err != nil {
		a.stall = stall{}
		t.stats.stalled.Store(nil)
	}
}

// expiredWait is how long a task waits that may have been given to another member, until the group says
// whether it has.
const expiredWait = 20 * time.Millisecond

// What tasks may do between two transactions before they wait, and how long they wait at a time. Counted are records of
// output held, and of input processed, as changes are held as well.
const (
	heldAll   = 16_000 // by all active tasks together
	heldLeast = 2_000  // by each in any case
	heldWait  = time.Second
)

// heldShare is what each of n tasks may do.
func heldShare(n int) int { return max(heldLeast, heldAll/max(1, n)) }

// waitsFor is the time for which an active task must not process; 0: it may. One that finds the lease
// expired, after the process was paused for instance, writes nothing more.
func (t *task) waitsFor(now time.Time) time.Duration {
	a := t.active
	switch {
	case a == nil || a.stopped:
		return 0
	case t.env.cfg.Group.Expired(now):
		return expiredWait
	case a.held && max(len(a.out), a.ahead) > heldShare(int(t.env.active.Load())):
		return heldWait // it is woken when it may write
	case a.stall.err == nil:
		return 0
	}
	return max(0, a.stall.until.Sub(now))
}

// failInput handles an error of the processor.
func (t *task) failInput(a *processing, err error) {
	var bad *topology.RecordError
	if !errors.As(err, &bad) {
		a.stopped = true // until the manager closes it
		t.env.failed(t, err)
		return
	}
	a.stall.err = err
	a.stall.failures++
	wait := backoff(a.stall.failures)
	a.stall.until = time.Now().Add(wait)
	t.env.totals.failures.Add(1)
	t.stats.stalled.Store(&failure{err: err, failures: a.stall.failures})
	t.env.cfg.Events.TaskFailed(FailureInfo{Task: t.id, Err: err, Failures: a.stall.failures, Retry: wait})
}
