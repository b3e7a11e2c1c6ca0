package leave

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Member is this instance as a member of the group. SetLeaving and ClearLeaving return at once and make
// the member join a round with the changed report; they are not lost when a round is under way.
type Member interface {
	SetLeaving(deadlineMs int64) // ms since the epoch; 0: none
	ClearLeaving()
	Leave(ctx context.Context) error // LeaveGroup
}

// Tasks is what this instance runs. Remaining and Settled answer at once.
type Tasks interface {
	Remaining() int                   // tasks run here, or released without acknowledgement
	Settled() bool                    // the plan in force knows that this instance leaves, and leaves it nothing
	GiveUp(ctx context.Context) error // stop all tasks and commit them
}

// Marks is where marks are kept for everyone to see: the control topic.
type Marks interface {
	Put(ctx context.Context, m Mark) error
	Clear(ctx context.Context) error // takes this instance's mark back
}

// Config is what a Controller needs; every field but Interval is required.
type Config struct {
	Journal  *Journal
	Timeout  time.Duration // scale_down_timeout; zero: none
	Member   Member
	Tasks    Tasks
	Marks    Marks
	Logger   *slog.Logger
	Interval time.Duration // between looks at Tasks while draining; default 100 ms
}

// Bounds on what Kafka may take of a leave's time.
const (
	putTimeout   = 700 * time.Millisecond // a local request is answered within a second
	clearTimeout = 2 * time.Second
	leaveTimeout = 5 * time.Second
	// GiveUpTimeout bounds the last commit of an instance whose time is up.
	GiveUpTimeout = 5 * time.Second
)

// View is the state of a leave at one moment.
type View struct {
	Phase    Phase
	Deadline Deadline // of Draining; Never when there is none
	By       string   // who asked
	Left     error    // of Left: what Run returns
}

// Controller takes this instance out of the group when it is marked. All methods may be called from any
// goroutine.
type Controller struct {
	cfg   Config
	log   *slog.Logger
	wake  chan struct{} // one slot: something is in the inbox
	view  atomic.Pointer[View]
	inbox struct {
		sync.Mutex
		requests []func(*state)
	}
}

// state is owned by Run.
type state struct {
	mark      *Order // set by marks, kept in the journal
	stop      *Order // set by Drain: the process is to stop, nobody can cancel that
	announced *Deadline
	remaining int
	progress  time.Time
	stalled   bool
}

// NewController returns a controller that does nothing until Run.
func NewController(cfg Config) *Controller {
	if cfg.Interval <= 0 {
		cfg.Interval = 100 * time.Millisecond
	}
	c := &Controller{cfg: cfg, log: cfg.Logger.With("component", "leave"), wake: make(chan struct{}, 1)}
	v := View{Phase: Running}
	if o := cfg.Journal.Resumed(); o != nil {
		v = View{Phase: Draining, Deadline: o.Deadline, By: o.By}
	}
	c.view.Store(&v)
	return c
}

// Snapshot is the state of the leave.
func (c *Controller) Snapshot() View { return *c.view.Load() }

// Leave marks this instance, for a request that was made on its own host. The mark goes by way of the
// control topic, so that marks and cancels have one order wherever they were made; when Kafka does not
// take it in time, or the mark is for Now, the controller follows it directly.
func (c *Controller) Leave(ctx context.Context, d Deadline, by string) error {
	if c.Snapshot().Phase >= Drained {
		return ErrDone
	}
	m := Mark{Incarnation: c.cfg.Journal.Incarnation(), Deadline: d, By: by}
	if d != Now {
		ctx, cancel := context.WithTimeout(ctx, putTimeout)
		defer cancel()
		err := c.cfg.Marks.Put(ctx, m)
		if err == nil {
			return nil
		}
		c.log.Warn("the control topic did not take the leave mark: following it without", "error", err)
	}
	c.Mark(m)
	return nil
}

// Cancel takes the mark back, for a request that was made on this instance's own host.
func (c *Controller) Cancel(ctx context.Context) error {
	if c.Snapshot().Phase >= Drained {
		return ErrDone
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if err := c.cfg.Marks.Clear(ctx); err != nil {
		c.log.Warn("the control topic did not take the cancellation: following it without", "error", err)
		c.Cancelled(c.cfg.Journal.Incarnation())
	}
	return nil
}

// Mark takes a mark of this instance that the control topic delivered.
func (c *Controller) Mark(m Mark) {
	if !c.ours("leave mark", m.Incarnation) {
		return
	}
	c.post(func(s *state) {
		next := Accept(s.mark, m, time.Now(), c.cfg.Timeout)
		if s.mark != nil && next == *s.mark {
			return
		}
		c.log.Info("marked as leaving", "deadline", next.Deadline.String(), "by", next.By)
		s.mark = &next
		c.save(next)
	})
}

// Cancelled takes the removal of a mark of this instance that the control topic delivered.
func (c *Controller) Cancelled(inc assign.Incarnation) {
	if !c.ours("cancellation of a leave", inc) {
		return
	}
	c.post(func(s *state) {
		if s.mark == nil {
			return
		}
		c.log.Info("the leave is cancelled")
		s.mark = nil
		if err := c.cfg.Journal.Clear(); err != nil {
			c.log.Error("a restart will go on leaving although the leave is cancelled: cancel it again then", "error", err)
		}
	})
}

// Drain makes the instance leave because its process is told to stop. It cannot be cancelled, and a
// restart does not go on with it.
func (c *Controller) Drain(by string) {
	c.post(func(s *state) {
		if s.stop == nil {
			now := time.Now()
			s.stop = &Order{Deadline: After(now, c.cfg.Timeout), By: by, Since: now}
			c.log.Info("draining before the process stops", "deadline", s.stop.Deadline.String(), "by", by)
		}
	})
}

// ours reports whether a record is for this run. One for another is no mistake of anybody: it is what a
// former or a later process under this instance id was told.
func (c *Controller) ours(what string, inc assign.Incarnation) bool {
	self := c.cfg.Journal.Incarnation()
	switch relate(self, inc) {
	case older:
		c.log.Debug("ignored a "+what+" for an older run of this instance", "incarnation", inc.String())
		return false
	case newer:
		c.log.Warn("ignored a "+what+" for a newer run under this instance id: is a second process using it?",
			"incarnation", inc.String(), "own", self.String())
		return false
	default:
		return true
	}
}

// save keeps the order for a restart; without it the leave still works, but does not outlive one.
func (c *Controller) save(o Order) {
	if err := c.cfg.Journal.Save(o); err != nil {
		c.log.Error("a restart will not go on leaving: mark the instance again then", "error", err)
	}
}

func (c *Controller) post(r func(*state)) {
	c.inbox.Lock()
	c.inbox.requests = append(c.inbox.requests, r)
	c.inbox.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Controller) takeInbox(s *state) {
	c.inbox.Lock()
	requests := c.inbox.requests
	c.inbox.requests = nil
	c.inbox.Unlock()
	for _, r := range requests {
		r(s)
	}
}

// Run follows marks until this instance has left: then it returns ErrDrained, ErrTimedOut or ErrNow. It
// returns nil when ctx ends first.
func (c *Controller) Run(ctx context.Context) error {
	s := &state{mark: c.cfg.Journal.Resumed()}
	if s.mark != nil {
		c.log.Info("going on with the leave that a restart interrupted", "deadline", s.mark.Deadline.String(), "by", s.mark.By)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		c.takeInbox(s)
		facts := c.look(s)
		d := Evaluate(facts)
		c.publish(d.Phase, facts.Order)
		switch d.Action {
		case Announce:
			s.announced = &facts.Order.Deadline
			c.cfg.Member.SetLeaving(facts.Order.Deadline.UnixMilli())
			continue
		case Withdraw:
			s.announced = nil
			c.cfg.Member.ClearLeaving()
			continue
		case Finish:
			return c.finish(ctx, s, facts.Order)
		case GiveUp:
			return c.giveUp(ctx, s, facts.Order)
		case Wait:
		}
		c.reportStall(s, d)
		timer.Stop()
		if d.Phase != Running {
			next := c.cfg.Interval
			if !d.Wake.IsZero() {
				next = min(next, d.Wake.Sub(facts.Now))
			}
			timer.Reset(next)
		}
		select {
		case <-c.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// look gathers the facts. Settled is asked for before Remaining: a task that comes in between then counts.
func (c *Controller) look(s *state) Facts {
	f := Facts{Now: time.Now(), Order: s.mark, Announced: s.announced}
	if s.stop != nil {
		o := *s.stop
		if s.mark != nil {
			o.Deadline = o.Deadline.Earlier(s.mark.Deadline)
		}
		f.Order = &o
	}
	if f.Order == nil {
		s.progress = time.Time{}
		return f
	}
	f.Settled = c.cfg.Tasks.Settled()
	f.Remaining = c.cfg.Tasks.Remaining()
	if s.progress.IsZero() || f.Remaining < s.remaining {
		s.progress = f.Now
	}
	s.remaining = f.Remaining
	f.Progress = s.progress
	return f
}

func (c *Controller) reportStall(s *state, d Decision) {
	if d.Stalled && !s.stalled {
		c.log.Warn("no task was handed over for a while; if every instance is leaving, nobody can take the tasks: add one or cancel a leave",
			"remaining", s.remaining, "for", StallAfter.String())
	}
	s.stalled = d.Stalled
}

func (c *Controller) publish(p Phase, o *Order) {
	v := View{Phase: p}
	if o != nil {
		v.Deadline, v.By = o.Deadline, o.By
	}
	if *c.view.Load() != v {
		c.view.Store(&v)
	}
}

// finish ends a leave that gave everything away.
func (c *Controller) finish(ctx context.Context, s *state, o *Order) error {
	c.log.Info("drained: leaving the group")
	return c.depart(ctx, s, o, ErrDrained)
}

// giveUp ends a leave whose time is up.
func (c *Controller) giveUp(ctx context.Context, s *state, o *Order) error {
	why := ErrTimedOut
	if o.Deadline == Now {
		why = ErrNow
	}
	c.log.Warn("giving up the tasks that are left", "remaining", c.cfg.Tasks.Remaining(), "reason", Reason(why))
	bounded, cancel := context.WithTimeout(ctx, GiveUpTimeout)
	err := c.cfg.Tasks.GiveUp(bounded)
	cancel()
	if err != nil {
		c.log.Error("the last commit failed: the instances that take the tasks repeat the work since the one before", "error", err)
	}
	return c.depart(ctx, s, o, why)
}

// depart takes the mark away, so that nobody follows it again, and then leaves the group.
func (c *Controller) depart(ctx context.Context, s *state, o *Order, why error) error {
	if s.mark != nil {
		bounded, cancel := context.WithTimeout(ctx, clearTimeout)
		if err := c.cfg.Marks.Clear(bounded); err != nil {
			c.log.Warn("the leave mark stays in the control topic, where a later run ignores it", "error", err)
		}
		cancel()
	}
	bounded, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := c.cfg.Member.Leave(bounded); err != nil {
		c.log.Warn("LeaveGroup failed: the group forgets this member when its session ends", "error", err)
	}
	if err := c.cfg.Journal.Close(*o, Reason(why)); err != nil {
		why = fmt.Errorf("%w (and a restart would go on leaving: remove %s): %w", why, c.cfg.Journal.path(), err)
	}
	c.view.Store(&View{Phase: Left, Deadline: o.Deadline, By: o.By, Left: why})
	return why
}

// Reason is the short name of what Run returned, for statuses: drained, timeout, now; else empty.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrDrained):
		return "drained"
	case errors.Is(err, ErrTimedOut):
		return "timeout"
	case errors.Is(err, ErrNow):
		return "now"
	}
	return ""
}
