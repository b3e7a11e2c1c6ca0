package instance

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// member is the membership as the task manager sees it, which is made before it.
type member struct {
	membership atomic.Pointer[group.Membership]
}

var _ tasks.Group = (*member)(nil)

func (r *member) ForceRound() {
	if m := r.membership.Load(); m != nil {
		m.ForceRound()
	}
}

func (r *member) Expired(now time.Time) bool {
	m := r.membership.Load()
	return m != nil && m.Expired(now)
}

// sinceNow is Expired for what is made now: it stays true once a lease was lost, whatever comes after.
func (r *member) sinceNow() func(time.Time) bool {
	losses := func() int {
		if m := r.membership.Load(); m != nil {
			return m.Losses()
		}
		return 0
	}
	at := losses()
	return func(now time.Time) bool { return losses() != at || r.Expired(now) }
}

// sayHello asks the other members to join the round that this one waits in.
func (i *Instance) sayHello(p *parts) {
	ctx, cancel := context.WithTimeout(context.Background(), i.cfg.Kafka.Heartbeat)
	defer cancel()
	h := control.Hello{Instance: i.id, Incarnation: i.incarnation(), AtMs: time.Now().UnixMilli()}
	if err := p.bus.Hello(ctx, h); err != nil {
		i.log.Debug("could not say hello; the others join at their next heartbeat", "error", err)
	}
}

// superseded is looked for this often.
const supersededCheck = 200 * time.Millisecond

// serve runs the parts until one of them, or Stop, ends the instance, and ends the others in order.
func (i *Instance) serve(ctx context.Context, p *parts, fatal <-chan error) error {
	var helpers, members sync.WaitGroup
	helping, stopHelpers := context.WithCancel(ctx)
	defer stopHelpers()
	memberCtx, stopMember := context.WithCancel(ctx)
	defer stopMember()
	tasksCtx, stopTasks := context.WithCancel(ctx)
	defer stopTasks()
	p.stopTasks = stopTasks

	left, notAdmitted := make(chan error, 1), make(chan error, 1)
	helpers.Go(func() { i.logEnd("flushing state", p.engine.Run(helping)) })
	if i.opts.PaceCollector {
		helpers.Go(func() { i.pace(helping, p.engine.RowBytes) })
	}
	helpers.Go(func() { i.logEnd("changelog reader", p.reader.Run(helping)) })
	helpers.Go(func() {
		i.logEnd("control topic", p.bus.Run(helping, controlHandler(i.id, p.journal.Incarnation(), p.leave, p.membership.Rejoin)))
	})
	helpers.Go(func() { p.evolution.repeat(helping) })
	if p.racks != nil {
		helpers.Go(func() { p.racks.run(helping) })
	}
	helpers.Go(func() { i.watchDisk(helping) })
	publishing, stopPublishing := context.WithCancel(helping)
	defer stopPublishing()
	published := make(chan struct{})
	helpers.Go(func() {
		defer close(published)
		i.logEnd("publishing the status", p.bus.Publish(publishing, i.Status))
	})
	go func() {
		defer close(p.tasksStopped)
		i.logEnd("tasks", p.manager.Run(tasksCtx))
	}()
	members.Go(func() {
		if err := p.membership.Run(memberCtx); err != nil {
			notAdmitted <- err
		}
	})
	helpers.Go(func() {
		if err := p.leave.Run(helping); err != nil {
			left <- err
		}
	})
	i.log.Info("running", "group", i.cfg.Kafka.Group, "incarnation", p.journal.Incarnation().String())

	end := i.await(p, left, notAdmitted, fatal)
	i.stopping.Store(true)
	if errors.Is(end, ErrState) {
		return end
	}
	// Tasks first, while the group still accepts their last commit; then the group; then what both used.
	stopTasks()
	select {
	case <-p.tasksStopped:
	case err := <-fatal: // a store that cannot be closed never is
		return err
	}
	if i.leavesGroup(end) {
		bounded, cancel := context.WithTimeout(ctx, leaveTimeout)
		if err := p.membership.Leave(bounded); err != nil {
			i.log.Warn("LeaveGroup failed: the group forgets this member when its session ends", "error", err)
		}
		cancel()
	}
	stopMember()
	members.Wait()
	stopPublishing()
	<-published
	i.farewell(ctx, p)
	stopHelpers()
	helpers.Wait()
	return end
}

// await returns why the instance ends; nil: Stop.
func (i *Instance) await(p *parts, left, notAdmitted, fatal <-chan error) error {
	check := time.NewTicker(supersededCheck)
	defer check.Stop()
	for {
		select {
		case <-i.stop:
			i.log.Info("stopping", "how", string(i.how))
			return nil
		case err := <-left:
			return err
		case err := <-notAdmitted:
			return err
		case err := <-fatal:
			return err
		case <-check.C:
			if p.manager.Status().Superseded {
				return ErrSuperseded
			}
		}
	}
}

// leavesGroup says whether the member is to be removed from the group at the end. After a leave that is
// done already; under keep a restart takes its place.
func (i *Instance) leavesGroup(end error) bool {
	if end == nil {
		return i.how != config.Keep
	}
	return errors.Is(end, ErrSuperseded)
}

// farewell publishes the last status, for those who wait for it.
func (i *Instance) farewell(ctx context.Context, p *parts) {
	bounded, cancel := context.WithTimeout(ctx, farewellLimit)
	defer cancel()
	if err := p.bus.PutStatus(bounded, i.Status()); err != nil {
		i.log.Debug("the last status could not be published", "error", err)
	}
}

func (i *Instance) logEnd(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		i.log.Error(what+" ended", "error", err)
	}
}

// close gives back what assemble opened.
func (p *parts) close(log *slog.Logger) {
	if p.coord != nil {
		p.coord.Close()
	}
	if p.transactions != nil {
		p.transactions.close()
	}
	if p.clients != nil {
		p.clients.close()
	}
	if p.engine != nil {
		if err := p.engine.Close(); err != nil {
			log.Error("closing the state directory", "error", err)
		}
	}
}
