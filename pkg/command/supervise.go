package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/leave"
)

// supervisor ends the instance as signals and orders say, and tells systemd how it is.
type supervisor struct {
	env      *env
	inst     *instance.Instance
	log      *slog.Logger
	policy   signalPolicy
	named    bool // the instance has an id of its own, under which a restart is known
	notify   *notifier
	orders   chan stopOrder
	draining bool // because the process is to stop
}

type stopOrder struct {
	how reaction
	by  string
}

func newSupervisor(e *env, inst *instance.Instance, cfg *config.Config, log *slog.Logger) *supervisor {
	return &supervisor{
		env: e, inst: inst, log: log, policy: signalPolicy{onTerminate: cfg.OnTerminate}, named: cfg.InstanceID != "",
		notify: newNotifier(log), orders: make(chan stopOrder),
	}
}

// run returns when the instance has ended.
func (s *supervisor) run(ended <-chan error) error {
	signals, look := s.env.caught(), time.NewTicker(s.notify.interval())
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			s.notify.stops()
			if s.draining && (errors.Is(err, leave.ErrDrained) || errors.Is(err, leave.ErrTimedOut)) {
				return nil // stopped as asked: no leave that somebody ordered
			}
			return err
		case sig := <-signals:
			s.log.Info("signal", "signal", sig.String())
			s.stop(s.policy.next(sig), sig.String())
		case o := <-s.orders:
			s.log.Info("told to stop", "by", o.by)
			s.stop(o.how, o.by)
		case <-look.C:
			s.notify.observe(observed{status: s.inst.Status(), live: s.inst.Live(), ready: s.inst.Ready()})
		}
	}
}

func (s *supervisor) stop(how reaction, by string) {
	if how != ignore {
		s.notify.stops()
	}
	switch how {
	case stopKeep:
		s.inst.Stop(config.Keep)
	case stopRelease:
		s.inst.Stop(config.Release)
	case drainFirst:
		s.draining = s.inst.Drain(by)
		if !s.draining { // it has not got any tasks yet
			s.inst.Stop(config.Release)
		}
	case exitAtOnce:
		s.env.exit(exitInterrupted)
	case ignore:
	}
}

// order takes an order from the admin socket.
func (s *supervisor) order(ctx context.Context, o admin.StopOrder) error {
	how := config.OnTerminate(o.How)
	if how == "" {
		how = s.policy.onTerminate
	}
	if how == config.Keep && !s.named {
		return fmt.Errorf("%w: keep needs a name under which the restarted instance is known: set instance_id", admin.ErrRefused)
	}
	reactions := map[config.OnTerminate]reaction{config.Keep: stopKeep, config.Release: stopRelease, config.Drain: drainFirst}
	r, ok := reactions[how]
	if !ok {
		return fmt.Errorf("%w: %q is no way to stop; use keep, release or drain", admin.ErrRefused, o.How)
	}
	select {
	case s.orders <- stopOrder{how: r, by: o.By}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
