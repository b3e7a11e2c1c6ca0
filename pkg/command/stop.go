package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
)

func newStop(e *env) *cobra.Command {
	var p place
	var how string
	var format output
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the instance on this host, and wait until it has ended",
		Long: `Stops the instance on this host as --how says, whatever its on_terminate is, and returns when it has ended:

  keep        commit and stay a member of the group: a restart gets its tasks back
  release     commit and leave the group: others take the tasks at once
  drain       hand the tasks over first, within scale_down_timeout
  kubernetes  in a pod of a StatefulSet that ends: drain if it was scaled down below this pod, release if
              all of its pods end, else keep. Needs the right to get the StatefulSet; without an answer: keep

The process ends with code 0, so that a supervisor does not start it again. leave is for a leave that
outlives restarts of the process, and of instances elsewhere.`,
		Example: `  streamworker stop -c words.yaml --how drain
  streamworker stop --state-dir /var/lib/streamworker/words`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return stopCommand{env: e, json: format == "json"}.run(ctx, &p, how)
		},
	}
	p.here(cmd)
	cmd.Flags().Var(&choice{&how, []string{string(config.Keep), string(config.Release), string(config.Drain), asScaled}}, "how",
		"keep, release, drain or kubernetes; default: what SIGTERM does")
	format.flag(cmd, "text", "json")
	return cmd
}

// asScaled is the value of --how that asks Kubernetes.
const asScaled = "kubernetes"

type stopCommand struct {
	env  *env
	json bool
}

func (s stopCommand) run(ctx context.Context, p *place, how string) error {
	e := s.env
	dir, err := p.hereDir(e)
	if err != nil {
		return err
	}
	if how == asScaled {
		decided, why := howKubernetesWants(ctx, e)
		fmt.Fprintf(e.errOut, "%s: %s\n", decided, why)
		how = string(decided)
	}
	from, err := newLocal(dir)
	if err != nil {
		return err
	}
	defer from.close()
	before, err := from.client.Status(ctx, false)
	if err != nil {
		return err
	}
	if err := from.client.Stop(ctx, how, requester()); err != nil {
		return err
	}
	return s.await(ctx, from, control.Target{Instance: before.Instance.Instance, Incarnation: before.Instance.Incarnation})
}

// await shows how a drain goes on until the instance has ended, and returns errUndrained if it left with
// tasks that it was to hand over.
func (s stopCommand) await(ctx context.Context, from *local, self control.Target) error {
	watch := control.NewWatch([]control.Target{self})
	show := progress{w: s.env.errOut, terminal: s.env.terminal && !s.json}
	told := false // that it stops without a drain
	for {
		reply, err := from.client.Status(ctx, false)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: the instance goes on stopping", context.Cause(ctx))
		case errors.Is(err, admin.ErrNotRunning):
			return s.conclude(from.dir, self)
		case err == nil && reply.Instance.State == control.Draining:
			if _, statuses, _, err := from.read(ctx); err == nil {
				if all := watch.Observe(statuses, nil, time.Now()); !ended(all) {
					show.update(all)
				}
			}
		case err == nil && reply.Instance.State == control.Stopping && !told:
			told = true
			show.line(fmt.Sprintf("%s: stopping, which takes %s at most", self.Instance, stopLimit))
		}
		select {
		case <-time.After(waitInterval):
		case <-ctx.Done():
		}
	}
}

// stopLimit is how long keep and release take.
const stopLimit = 5 * time.Second

// conclude says how the instance ended, as its state directory tells.
func (s stopCommand) conclude(dir string, self control.Target) error {
	rec, err := leave.ReadRecord(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	outcome, undrained := "stopped", false
	if err == nil && rec.Incarnation.SameRun(self.Incarnation) && rec.Left != "" {
		if outcome = rec.Left; outcome == control.LeftTimeout {
			outcome, undrained = control.TimedOut.String(), true
		}
	}
	if err := report(s.env.out, s.json, []result{{ID: self.Instance, Outcome: outcome}}); err != nil {
		return err
	}
	if undrained {
		return fmt.Errorf("%s %w: the other instances restore them", self.Instance, errUndrained)
	}
	return nil
}

// here adds the flags of commands that only speak with the instance on this host.
func (p *place) here(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.file, "config", "c", "", "configuration `file` of the application")
	cmd.Flags().StringVar(&p.stateDir, "state-dir", "", "state `directory` of the instance on this host")
}

func (p *place) hereDir(e *env) (string, error) {
	if p.file == "" && p.stateDir == "" {
		return "", usageError{errors.New("which instance? -c FILE or --state-dir DIR")}
	}
	if p.stateDir != "" {
		return p.stateDir, nil
	}
	r, err := p.resolve(e, false)
	if err != nil {
		return "", err
	}
	return r.stateDir, nil
}
