package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/control"
)

func newStatus(e *env) *cobra.Command {
	var p place
	var watch bool
	var format output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show instances, tasks, roles and lag",
		Long: `Shows the instances of an application, the tasks they run, learn and keep as standbys, and how far
learners have come. On an instance's host it asks that instance; with --brokers it needs nothing but Kafka.`,
		Example: `  streamworker status -c words.yaml
  streamworker status --state-dir /var/lib/streamworker/words --watch
  streamworker status --brokers kafka:9092 --app words -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			resolved, err := p.resolve(e, false)
			if err != nil {
				return err
			}
			s := statusCommand{env: e, json: format == "json"}
			if watch {
				return s.watch(ctx, resolved)
			}
			return s.once(ctx, resolved)
		},
	}
	p.flags(cmd)
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again every second until Ctrl-C; with -o json one line each")
	format.flag(cmd, "text", "json")
	return cmd
}

// watchInterval is between two looks at a group that is watched.
const watchInterval = time.Second

type statusCommand struct {
	env  *env
	json bool
}

func (s statusCommand) once(ctx context.Context, p *place) error {
	from, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	defer from.close()
	view, err := s.read(ctx, from)
	if err != nil {
		return err
	}
	if s.json {
		enc := json.NewEncoder(s.env.out)
		enc.SetIndent("", "  ")
		return enc.Encode(view)
	}
	return writeView(s.env.out, view, time.Now())
}

// watch shows every change; while the source does not answer it says so and goes on.
func (s statusCommand) watch(ctx context.Context, p *place) error {
	from, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	defer from.close()
	for {
		view, err := s.read(ctx, from)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			fmt.Fprintf(s.env.errOut, "streamworker: %v\n", err)
		case s.json:
			if err := json.NewEncoder(s.env.out).Encode(view); err != nil {
				return err
			}
		default:
			if s.env.terminal {
				fmt.Fprint(s.env.out, clearScreen)
			}
			if err := writeView(s.env.out, view, time.Now()); err != nil {
				return err
			}
			fmt.Fprintln(s.env.out)
		}
		select {
		case <-time.After(watchInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// open finds who can tell: the instance on this host, or Kafka if there is none and its address is known.
func (s statusCommand) open(ctx context.Context, p *place) (source, error) {
	if p.stateDir != "" {
		l, err := newLocal(p.stateDir)
		if err != nil {
			return nil, err
		}
		_, err = l.client.Status(ctx, false)
		if err == nil {
			return l, nil
		}
		l.close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, admin.ErrNotRunning) || len(p.brokers) == 0 {
			return nil, fmt.Errorf("%w; from anywhere: streamworker status --brokers ADDRESS --app NAME", err)
		}
		fmt.Fprintf(s.env.errOut, "%v: asking Kafka\n", err)
	}
	r, err := newRemote(s.env, p)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s statusCommand) read(ctx context.Context, from source) (control.View, error) {
	app, statuses, _, err := from.read(ctx)
	if err != nil {
		return control.View{}, err
	}
	if l, ok := from.(*local); ok && l.note != "" {
		fmt.Fprintf(s.env.errOut, "only this instance is shown: %s\n", l.note)
	}
	return control.NewView(app, statuses, time.Now()), nil
}
