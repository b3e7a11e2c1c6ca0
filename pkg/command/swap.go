package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/swap"
)

func newSwap(e *env) *cobra.Command {
	s := &swapCommand{env: e}
	var format output
	cmd := &cobra.Command{
		Use:   "swap",
		Short: "Move an application from one pool of instances to another",
		Long: `Waits until the instances of the new pool run, marks all of the old one as leaving at the same time, and
shows how they hand their tasks over, until they have left. Each task moves once, to an instance that stays.

The new pool has to have the capacity of the old one, or at least --min instances. Before the marks nothing
has happened: Ctrl-C ends all of it. From then on the swap goes on without the command: the same one, on any
machine, shows it again and marks what is not marked; --cancel takes it back.`,
		Example: `  # Start the instances with pool=green, then, or before that:
  streamworker swap --brokers kafka:9092 --app words --from pool=blue --to pool=green

  # Five new ones are enough; give up waiting for them after half an hour.
  streamworker swap --brokers kafka:9092 --app words --from pool=blue --to pool=green --min 5 --wait-limit 30m

  # Keep the old pool after all.
  streamworker swap --brokers kafka:9092 --app words --from pool=blue --cancel`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.json = format == "json"
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return s.run(ctx)
		},
	}
	s.place.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.from, "from", "", "`labels` of the old pool, e.g. pool=blue")
	f.StringVar(&s.to, "to", "", "`labels` of the new pool")
	f.IntVar(&s.min, "min", 0, "`number` of new instances that have to run, whatever their capacity; default: so many that they have the capacity of the old ones")
	f.DurationVar(&s.limit, "wait-limit", 0, "`time` to wait for the new pool; default: as long as it takes")
	f.StringVar(&s.timeout, "timeout", "", "`time` after which an old instance leaves with what is left, e.g. 10m, or none; default: its scale_down_timeout")
	f.BoolVar(&s.cancel, "cancel", false, "take the marks of the old pool back")
	format.flag(cmd, "text", "json")
	return cmd
}

type swapCommand struct {
	env      *env
	json     bool
	place    place
	from, to string
	min      int
	limit    time.Duration
	timeout  string
	cancel   bool
}

// parse checks what the flags say together.
func (s *swapCommand) parse(now time.Time) (cfg swap.Config, d leave.Deadline, err error) {
	wrong := func(format string, args ...any) (swap.Config, leave.Deadline, error) {
		return swap.Config{}, leave.Default, usageError{fmt.Errorf(format, args...)}
	}
	switch {
	case s.from == "":
		return wrong("which instances are to leave? --from label=value")
	case s.to == "" && !s.cancel:
		return wrong("which instances are to take their tasks? --to label=value")
	case s.cancel && (s.min != 0 || s.limit != 0 || s.timeout != ""):
		return wrong("--cancel goes with neither --min, --wait-limit nor --timeout")
	case s.min < 0 || s.limit < 0:
		return wrong("--min and --wait-limit cannot be negative")
	}
	if cfg.From, err = control.ParseSelector(s.from); err != nil {
		return wrong("--from: %w", err)
	}
	if s.to != "" {
		if cfg.To, err = control.ParseSelector(s.to); err != nil {
			return wrong("--to: %w", err)
		}
		if cfg.From.String() == cfg.To.String() {
			return wrong("--from and --to are the same, %s: give the new instances a label of their own", cfg.From)
		}
	}
	if d, err = deadline(s.timeout, now); err != nil {
		return wrong("%w", err)
	}
	cfg.Min = s.min
	return cfg, d, nil
}

func (s *swapCommand) run(ctx context.Context) error {
	cfg, d, err := s.parse(time.Now())
	if err != nil {
		return err
	}
	p, err := s.place.resolve(s.env, true)
	if err != nil {
		return err
	}
	from, err := newRemote(s.env, p)
	if err != nil {
		return err
	}
	defer from.close()
	if s.cancel {
		return s.takeBack(ctx, from, cfg.From)
	}
	f := &following{from: from, cfg: cfg, deadline: d, limit: s.limit, swap: swap.New(cfg)}
	f.show = swapView{app: p.app, cfg: cfg, json: s.json, out: s.env.out, progress: progress{w: s.env.errOut, terminal: s.env.terminal && !s.json}}
	return f.run(ctx)
}

// takeBack cancels the leaves of the old pool.
func (s *swapCommand) takeBack(ctx context.Context, from *remote, sel control.Selector) error {
	_, statuses, marks, err := from.read(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	targets, err := control.Pick(statuses, "", sel, now)
	if err != nil {
		return fmt.Errorf("application %s: there is nothing to cancel: %w", from.app, err)
	}
	leaving := make(map[string]bool)
	for _, m := range marks {
		leaving[m.Instance] = true
	}
	for _, i := range control.NewView("", statuses, now).Instances {
		leaving[i.ID] = leaving[i.ID] || i.State == control.Draining
	}
	var cancelled []control.Target
	var results []result
	for _, t := range targets {
		r := result{ID: t.Instance, Outcome: "was not leaving"}
		if leaving[t.Instance] {
			cancelled = append(cancelled, t)
			r.Outcome = "cancelled"
		}
		results = append(results, r)
	}
	if err := from.cancel(ctx, cancelled); err != nil {
		return err
	}
	return report(s.env.out, s.json, results)
}

// following carries a swap out.
type following struct {
	from     *remote
	cfg      swap.Config
	deadline leave.Deadline
	limit    time.Duration // of waiting for the new pool; 0: none
	swap     *swap.Swap
	show     swapView
	begun    bool
}

var (
	errNotBegun = errors.New("nothing is marked, so the swap has not begun; the same command begins it")
	errGoesOn   = errors.New("the swap goes on without this command; the same one shows it again, swap --cancel takes it back")
)

func (f *following) run(ctx context.Context) error {
	start := time.Now()
	for {
		step, err := f.look(ctx)
		if err != nil {
			return err
		}
		switch {
		case step.Phase == swap.Ended:
			return worst(step.Old, false)
		case step.Phase == swap.Waiting && f.limit > 0 && time.Since(start) >= f.limit:
			return fmt.Errorf("after %s: %s: %w", f.limit, step.Wait, errNotBegun)
		}
		select {
		case <-time.After(waitInterval):
		case <-ctx.Done():
			return f.interrupted(ctx)
		}
	}
}

// look looks at the group once, and sets the marks that this leads to.
func (f *following) look(ctx context.Context) (swap.Step, error) {
	_, statuses, marks, err := f.from.read(ctx)
	switch {
	case ctx.Err() != nil:
		return swap.Step{}, f.interrupted(ctx)
	case err != nil && f.show.silent(err):
		return swap.Step{}, nil
	case err != nil:
		return swap.Step{}, err
	}
	now := time.Now()
	step, err := f.swap.Observe(statuses, marks, now)
	if err != nil {
		return step, fmt.Errorf("application %s: %w", f.from.app, err)
	}
	if len(step.Mark) > 0 {
		// An interrupt waits for the answer, so that it is known whether the swap has begun.
		if err := f.from.mark(context.WithoutCancel(ctx), step.Mark, f.deadline, f.cfg.Name()); err != nil {
			return step, fmt.Errorf("some of the old pool may be marked; the same command goes on: %w", err)
		}
	}
	f.begun = step.Phase != swap.Waiting
	return step, f.show.update(step, control.NewView("", statuses, now).AllLeaving(), now)
}

func (f *following) interrupted(ctx context.Context) error {
	if f.begun {
		return fmt.Errorf("%w: %w", context.Cause(ctx), errGoesOn)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), errNotBegun)
}
