package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/advise"
	"github.com/streamworker/streamworker/pkg/control"
)

func newAdvise(e *env) *cobra.Command {
	a := &adviseCommand{env: e}
	var p place
	var format output
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Say how many instances the present load needs, and why",
		Long: `Reckons from what the instances tell of the last seconds: what arrives, what a record takes of a thread's time,
how far behind they are, how much state they have and how much disk. It changes nothing. An autoscaler can
follow it, or the same figures as metrics.`,
		Example: `  streamworker advise --brokers kafka:9092 --app words
  streamworker advise --brokers kafka:9092 --app words --for 1m -o json

  # Half of the threads for peaks, what is behind worked off in two minutes, three to ten instances.
  streamworker advise -c words.yaml --target 0.5 --catch-up 2m --min 3 --max 10`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return usageError{err}
			}
			a.json = format == "json"
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			resolved, err := p.resolve(e, false)
			if err != nil {
				return err
			}
			return a.run(ctx, resolved)
		},
	}
	p.flags(cmd)
	d := advise.DefaultPolicy
	f := cmd.Flags()
	f.Float64Var(&a.policy.Target, "target", d.Target, "`share` of the threads that may be at work")
	f.Float64Var(&a.policy.Tolerance, "tolerance", d.Tolerance, "how far below the target fewer instances have to stay, as a `share` of it")
	f.DurationVar(&a.policy.CatchUp, "catch-up", d.CatchUp, "`time` in which what is behind is to be worked off")
	f.IntVar(&a.policy.Min, "min", d.Min, "least `number` of instances")
	f.IntVar(&a.policy.Max, "max", 0, "greatest `number` of instances; default: none")
	f.DurationVar(&a.span, "for", 0, "look for so long and take the mean; default: the last 5 seconds as the instances tell them")
	format.flag(cmd, "text", "json")
	return cmd
}

type adviseCommand struct {
	env    *env
	json   bool
	policy advise.Policy
	span   time.Duration
}

func (a *adviseCommand) check() error {
	p := a.policy
	switch {
	case p.Target <= 0 || p.Target > 1:
		return fmt.Errorf("--target %v: want a share above 0 and at most 1, e.g. 0.7", p.Target)
	case p.Tolerance <= 0 || p.Tolerance >= 1:
		return fmt.Errorf("--tolerance %v: want a share between 0 and 1, e.g. 0.15", p.Tolerance)
	case p.CatchUp < time.Second:
		return fmt.Errorf("--catch-up %s: want a second at least", p.CatchUp)
	case p.Min < 1 || p.Max != 0 && p.Max < p.Min:
		return errors.New("--min and --max: want at least 1 instance, and no less at most")
	case a.span < 0:
		return errors.New("--for: a time cannot be negative")
	}
	return nil
}

func (a *adviseCommand) run(ctx context.Context, p *place) error {
	from, err := statusCommand{env: a.env}.open(ctx, p)
	if err != nil {
		return err
	}
	defer from.close()
	app, looks, err := a.watch(ctx, from)
	if err != nil {
		return err
	}
	advice, err := advise.Advise(advise.Mean(looks), a.policy, time.Now())
	if err != nil {
		return fmt.Errorf("application %s: %w", app, err)
	}
	if a.json {
		return json.NewEncoder(a.env.out).Encode(struct {
			App string `json:"app"`
			advise.Advice
		}{app, advice})
	}
	return writeAdvice(a.env.out, app, advice)
}

// watch looks at the group once a second for the time that was asked for, at least once.
func (a *adviseCommand) watch(ctx context.Context, from source) (app string, looks [][]control.Status, err error) {
	for end := time.Now().Add(a.span); ; {
		name, statuses, _, err := from.read(ctx)
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		if err != nil {
			return "", nil, err
		}
		if l, ok := from.(*local); ok && l.note != "" {
			return "", nil, fmt.Errorf("only the instance on this host is known: %s", l.note)
		}
		app, looks = name, append(looks, statuses)
		if !time.Now().Before(end) {
			return app, looks, nil
		}
		select {
		case <-time.After(watchInterval):
		case <-ctx.Done():
		}
	}
}

// writeAdvice prints an advice for people.
func writeAdvice(w io.Writer, app string, a advise.Advice) error {
	verdict := "as there are"
	switch {
	case a.Needed > a.Instances:
		verdict = fmt.Sprintf("%d more than there are", a.Needed-a.Instances)
	case a.Needed < a.Instances:
		verdict = fmt.Sprintf("%d fewer than there are", a.Instances-a.Needed)
	}
	fmt.Fprintf(w, "%s needs %s, %s.\n\n", app, count(a.Needed, "instance"), verdict)
	for _, r := range a.Reasons {
		fmt.Fprintf(w, "- %s\n", r)
	}
	lag := thousands(a.Lag)
	switch {
	case a.SecondsToCatchUp != nil:
		lag += ", worked off in " + (time.Duration(*a.SecondsToCatchUp) * time.Second).String()
	case a.Lag > 0 && a.PerThread > 0:
		lag += ", not worked off by the present instances"
	}
	_, err := fmt.Fprintf(w, "\narriving %s records/s, processed %s\nat work %.1f of %d threads, each %s records/s\nbehind %s\n",
		thousands(int64(a.Arriving)), thousands(int64(a.Processed)), a.Busy, a.Threads, perThread(a.PerThread), lag)
	return err
}

func perThread(n float64) string {
	if n == 0 {
		return "an unknown number of"
	}
	return thousands(int64(n))
}
