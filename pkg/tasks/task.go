package tasks

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
)

// task is one open task: its store, and the goroutine that alone touches it. It begins as a copy that
// replays its changelogs (learner, standby, or a restore) and becomes active in place.
//
// Others post work to it; results go back to the manager's mailbox. Nothing in it knows of plans or leases.
type task struct {
	id  assign.TaskID
	sub *Subtopology
	env *env
	log *slog.Logger

	box   *mailbox
	inbox inbox
	done  chan struct{} // closed when the goroutine has ended

	ahead bool // opened before it was to run: as a learner or standby

	producer *kgo.Client // that of the lease under which it became active
	ctx      context.Context
	cancel   context.CancelFunc // drops what is buffered in the producer: the task closes dirty

	// Of the goroutine alone.
	db     *state.DB // nil for a stateless task
	copy   *copying
	active *processing
	slab   *slab // of records to be produced
	closed bool
	// careful: it has failed before, and has not committed since. Under exactly once it need not be.
	careful bool
	failed  bool // it has failed before: whether its state can be written shows before it goes on

	opened atomic.Pointer[state.DB] // db for those who only read; they may find it closed
	stats  stats
}

// env is what the tasks of one instance share.
type env struct {
	cfg *Config
	ctx context.Context
	// failed tells the manager that the task cannot go on and must be closed.
	failed  func(t *task, err error)
	cpu     chan struct{} // one slot for each task that may process at one time
	copies  chan struct{} // the same for copies, so that warming up does not starve processing
	input   *input
	globals *globals
	totals  *totals

	producer *kgo.Client  // of the manager's loop; tasks keep the one that they became active with
	wrote    atomic.Bool  // something was produced in the present transaction
	active   atomic.Int32 // tasks that process
}

// stats are a task's figures that anyone may read at any time.
type stats struct {
	copyLag  atomic.Int64 // records behind the changelogs' ends; -1: not known yet
	position atomic.Int64 // sum of the changelogs' positions held
	inputLag atomic.Int64 // records behind the input's end
	restored atomic.Int64 // changelog records applied since it was opened
	records  atomic.Int64 // input records processed
	stalled  atomic.Pointer[failure]
}

// failure is what keeps a task from going on.
type failure struct {
	err      error
	failures int
}

func newTask(id assign.TaskID, sub *Subtopology, e *env) *task {
	t := &task{id: id, sub: sub, env: e, box: newMailbox(), done: make(chan struct{})}
	if e.input != nil {
		t.inbox.total = e.input.backlog
	}
	t.log = e.cfg.Logger.With("task", id.String())
	t.ctx, t.cancel = context.WithCancel(e.ctx)
	t.stats.copyLag.Store(-1)
	return t
}

// run is the task's goroutine. It ends after close.
func (t *task) run() {
	defer close(t.done)
	defer t.cancel()
	var stall *time.Timer
	for !t.closed {
		ops := t.box.take()
		for _, op := range ops {
			op()
		}
		if len(ops) > 0 {
			continue
		}
		tick := t.tick(time.Now())
		if t.processNext() {
			continue
		}
		var retry <-chan time.Time
		now := time.Now()
		d := max(t.waitsFor(now), t.waitsForSource(now))
		if d == 0 || tick > 0 && tick < d {
			d = tick
		}
		if d > 0 {
			if stall == nil {
				stall = time.NewTimer(d)
			} else {
				stall.Reset(d)
			}
			retry = stall.C
		}
		select {
		case <-t.box.wake:
		case <-retry:
		}
		if stall != nil {
			stall.Stop()
		}
	}
	for _, op := range t.box.close() {
		op() // what was posted while closing; each op checks what is open
	}
}

// close ends the task. Unless clean, what was not committed is dropped. then runs on the task's goroutine
// when the store is closed.
func (t *task) close(clean bool, then func(error)) {
	if t.closed {
		return
	}
	t.closed = true
	t.stopCopying()
	var err error
	if a := t.active; a != nil {
		t.active = nil
		t.env.active.Add(-1)
		t.inbox.drop()
		if !clean {
			t.cancel()
			a.awaitFlushes()
			if t.db != nil {
				t.db.Discard()
			}
		} else if t.db != nil {
			t.db.MarkCurrent()
		}
	}
	if t.db != nil {
		err = t.db.Close()
		t.db = nil
	}
	then(err)
}
