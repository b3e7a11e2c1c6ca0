package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// How often learners are checked and the status is published.
const checkInterval = 100 * time.Millisecond

// stopPatience is how long a stopping instance waits for its last flush and commit.
const stopPatience = 3 * time.Second

// recovery is how long a task that has failed has to go on until the failure is forgotten. (A commit shows that
// at once, but without input there is none.)
const recovery = 10 * time.Second

// Manager runs the tasks of one instance. Its loop owns the handover machine and the tasks' slots, and
// brings what runs in line with what the machine says; everything that waits happens elsewhere and
// reports back. Report, Plan, Assigned, Revoke and Lost are called by the group client, the others by anyone.
type Manager struct {
	cfg Config
	log *slog.Logger
	box *mailbox
	env *env

	patience time.Duration // for the last flush and commit of a stopping instance
	recovery time.Duration // after which a task that goes on is well again

	opener  *opener
	txn     *transaction // of the loop alone; nil: at least once
	status  atomic.Pointer[Status]
	stopped chan struct{} // closed when the loop has ended

	// Of the loop alone.
	machine    *handover.Machine
	slots      map[assign.TaskID]*slot
	committing bool
	stopping   bool
	adopted    bool            // a plan has come since the last commit of a stopping instance
	unknown    []assign.TaskID // the last plan tells to run them, and the topology does not have them
	lastReport assign.Report
	stuck      handover.Stuck
	stuckNow   []handover.StuckCopy
	revoked    []func() // to be called when no release is under way
	upkept     upkeepTimes

	totals totals
	wg     sync.WaitGroup // requests on their way
	ctx    context.Context
}

// totals count since the start; anyone may read them.
type totals struct {
	recordsIn, recordsOut, changes, restored                            atomic.Int64
	commits, commitsRefused, commitsUnanswered, aborts                  atomic.Int64
	takeovers, releases, failures, skipped, dropped, deadLettered, late atomic.Int64

	busy atomic.Int64 // ns in which tasks computed, summed over the threads
}

// NewManager makes a manager of an instance that holds nothing yet.
func NewManager(cfg Config) *Manager {
	cfg.ensureDefaults()
	m := &Manager{
		cfg: cfg, log: cfg.Logger, box: newMailbox(), stopped: make(chan struct{}),
		machine: handover.New(), slots: map[assign.TaskID]*slot{}, patience: stopPatience, recovery: recovery,
	}
	m.machine.Stable, m.machine.Racks, m.machine.Yields = cfg.Stable, cfg.Identity.Rack != "", cfg.Yields
	m.stuck.After = cfg.StuckAfter
	m.status.Store(&Status{At: time.Now()})
	return m
}

// Run runs tasks until the context ends, then stops them: what was processed is committed if the
// broker answers in time, and every store is closed. The group client should stop only after it.
func (m *Manager) Run(ctx context.Context) error {
	defer close(m.stopped)
	// Requests outlive ctx, so that the last commit can be made.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m.ctx = work
	in := newInput(m.cfg.Input)
	m.env = &env{
		cfg: &m.cfg, ctx: work, input: in, totals: &m.totals,
		cpu: make(chan struct{}, m.cfg.Threads), copies: make(chan struct{}, max(1, m.cfg.Threads/2)),
		failed: func(t *task, err error) { m.box.post(func() { m.failed(t, err) }) },
	}
	m.env.globals = newGlobals(m.cfg.Globals, m.cfg.Reader, m.log)
	in.onFail = func(r route, err error) { m.box.post(func() { m.inputFailed(r, err) }) }
	if err := m.renewProducer(); err != nil {
		return err
	}
	if m.cfg.Transactions != nil {
		m.txn = &transaction{}
		m.initProducer()
	}
	m.opener = newOpener(m.cfg.Offsets, m.fenceUnstable, m.log)
	var helpers sync.WaitGroup
	helpers.Go(func() { in.run(work) })
	helpers.Go(func() { m.opener.run(work) })
	helpers.Go(func() { m.env.globals.run(work) })

	m.loop(ctx)
	m.shutdown()
	m.tellRevoked()

	cancel()
	helpers.Wait()
	m.env.producer.Close()
	m.wg.Wait()
	for _, f := range m.box.close() {
		f() // a caller may be waiting for it
	}
	m.tellRevoked()
	return nil
}

func (m *Manager) loop(ctx context.Context) {
	commit := time.NewTicker(m.cfg.CommitInterval)
	defer commit.Stop()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.box.wake:
			m.serveBox()
		case <-commit.C:
			m.commit()
		case <-check.C:
			m.check()
		}
		m.tellRevoked()
		m.requestRound()
	}
}

// serveBox does what was posted to the loop.
func (m *Manager) serveBox() {
	for _, f := range m.box.take() {
		f()
	}
	if m.txn != nil && m.txn.again {
		m.cutTransaction()
	}
}

// call runs f on the loop and waits for it. After the loop has ended it does nothing; false says so.
func (m *Manager) call(f func()) bool {
	done := make(chan struct{})
	if !m.box.post(func() { f(); close(done) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-m.stopped:
		return false
	}
}

// async runs f, which may wait, outside the loop.
func (m *Manager) async(f func(ctx context.Context)) {
	m.wg.Go(func() { f(m.ctx) })
}

func (m *Manager) requestRound() {
	if m.machine.TakeRoundRequest() && !m.stopping {
		m.cfg.Group.ForceRound()
	}
}

// Report is what this instance says of itself at a join.
func (m *Manager) Report() assign.Report {
	var r assign.Report
	if !m.call(func() { r = m.report() }) {
		return m.lastReport
	}
	return r
}

func (m *Manager) report() assign.Report {
	r := m.machine.Report()
	id := m.cfg.Identity
	r.Instance, r.Incarnation, r.Capacity = id.Instance, id.Incarnation, id.Capacity
	r.Labels, r.Rack, r.ConfigHash = id.Labels, id.Rack, id.ConfigHash
	for _, list := range [][]assign.Copy{r.Learning, r.Standby} {
		for i := range list {
			if s := m.slots[list[i].Task]; s != nil && s.task != nil {
				// Coarse, so that the report changes only when the copy has come on by something that matters.
				p := s.task.stats.position.Load()
				list[i].Position = p - p%m.cfg.AcceptableLag
			}
		}
	}
	for _, l := range m.cfg.Engine.Local() {
		if id, err := assign.ParseTaskID(l.Task); err == nil {
			r.Local = append(r.Local, assign.Copy{Task: id, Position: l.Position})
		}
	}
	slices.SortFunc(r.Local, func(a, b assign.Copy) int { return a.Task.Compare(b.Task) })
	m.lastReport = r
	return r
}

// Plan takes the plan that this member was sent for a generation.
func (m *Manager) Plan(memberID string, generation int32, plan assign.MemberPlan) {
	m.call(func() {
		plan, m.unknown = m.cfg.known(plan)
		for _, t := range m.unknown {
			m.log.Error("told to run a task that is not part of this instance's topology: do all instances run the same file?", "task", t.String())
		}
		m.machine.Adopt(handover.Lease{Member: memberID, Generation: generation}, plan)
		m.log.Debug("adopted a plan", "member", memberID, "generation", generation, "own", len(plan.Own), "take", len(plan.Take),
			"release", len(plan.Release), "learn", len(plan.Learn), "standby", len(plan.Standby))
		m.planned()
	})
}

// planned brings what runs in line with a plan that the machine has adopted.
func (m *Manager) planned() {
	if m.stopping {
		m.planWhileStopping()
	}
	m.reconcileAll()
	m.planForTransaction()
	m.commitReady()
	m.publish()
}

// Lost ends the membership under which tasks ran: what was not committed is dropped.
func (m *Manager) Lost(err error) {
	m.call(func() {
		m.log.Warn("lost the group: dropping owned tasks until the next plan", "error", err)
		m.machine.Lost()
		m.unknown = nil
		if m.txn != nil && !m.stopping {
			m.abortTransaction(err)
		}
		m.reconcileAll()
		if m.stopping {
			m.dropUnflushed()
		}
		m.publish()
		if m.txn != nil {
			return
		}
		if err := m.renewProducer(); err != nil {
			m.log.Error("no new producer; going on with the old one", "error", err)
		}
	})
}

// renewProducer gives tasks that are opened from now on a producer of their own. What the former one has
// not sent was meant for a lease that is over: it is dropped, and never sent under a later one.
func (m *Manager) renewProducer() error {
	p, err := m.cfg.NewProducer()
	if err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	if old := m.env.producer; old != nil {
		m.wg.Go(old.Close)
	}
	m.env.producer = p
	return nil
}

// SetLeaving sets or takes back the leaving mark; deadlineMs is absolute, in ms since the epoch, 0: none.
func (m *Manager) SetLeaving(leaving bool, deadlineMs int64) {
	m.call(func() {
		m.machine.SetLeaving(leaving, deadlineMs)
		m.publish()
	})
}

// ForceRound asks for a new round in which this instance's report differs.
func (m *Manager) ForceRound() {
	m.call(m.machine.ForceRound)
}

// check looks at learners, takes up again what had to wait, and publishes the status.
func (m *Manager) check() {
	now := time.Now()
	for _, s := range m.slots {
		if s.task != nil && s.mode == replaying && !s.closing && m.machine.Task(s.id).Phase.Copies() {
			m.checkCopy(s)
		}
		s.recover(now, m.recovery)
	}
	m.watchCopies(now)
	m.takeUp(now)
	m.commitReady()
	m.upkeep(now)
	m.publish()
}

// watchCopies looks which copies do not come on.
func (m *Manager) watchCopies(now time.Time) {
	for t, s := range m.slots {
		at := m.machine.Task(t)
		if at.Phase == handover.Running {
			m.stuck.Forget(t)
		}
		if at.Phase.Copies() {
			c := handover.Copy{Position: -1, Ready: at.Ready, Failures: s.failures, Err: s.err}
			if s.task != nil && !s.closing {
				c.Position = s.task.stats.position.Load()
			}
			m.stuck.Watch(t, c, now)
		}
	}
	before := m.stuckNow
	m.stuckNow = m.stuck.At(now, func(t assign.TaskID) bool { return m.machine.Task(t).Phase.Copies() })
	tasks := make([]assign.TaskID, len(m.stuckNow))
	for i, c := range m.stuckNow {
		tasks[i] = c.Task
		if !slices.ContainsFunc(before, func(b handover.StuckCopy) bool { return b.Task == c.Task }) {
			m.log.Warn("a copy is stuck", "task", c.Task.String(), "reason", c.Reason)
		}
	}
	m.machine.SetStuck(tasks)
}

// takeUp goes on with what had to wait.
func (m *Manager) takeUp(now time.Time) {
	for _, s := range m.slots {
		if !s.begun && !s.closing && now.After(s.retryAt) {
			m.reconcile(s)
		}
	}
}

// recover forgets a failure some time after it.
func (s *slot) recover(now time.Time, after time.Duration) {
	if s.err != nil && !s.well.IsZero() && now.Sub(s.well) > after {
		s.failures, s.err = 0, nil
	}
	if s.input.err != nil && !s.input.added.IsZero() && now.Sub(s.input.added) > after {
		s.input = inputTrouble{}
	}
}

// checkCopy says that a copy is ready if it was within the acceptable lag in two checks running.
func (m *Manager) checkCopy(s *slot) {
	lag := s.task.stats.copyLag.Load()
	if lag < 0 || lag > m.cfg.AcceptableLag {
		s.checks = 0
	} else if s.checks < 2 {
		s.checks++
	}
	m.machine.CopyReady(s.id, s.epoch, s.checks >= 2)
}
