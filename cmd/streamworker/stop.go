package main

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
			return stopHere(ctx, e, &p, how)
		},
	}
	p.here(cmd)
	cmd.Flags().Var(&choice{&how, []string{string(config.Keep), string(config.Release), string(config.Drain), asScaled}}, "how",
		"keep, release, drain or kubernetes; default: what SIGTERM does")
	return cmd
}

// asScaled is the value of --how that asks Kubernetes.
const asScaled = "kubernetes"

func stopHere(ctx context.Context, e *env, p *place, how string) error {
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
	return awaitEnd(ctx, e, from, control.Target{Instance: before.Instance.Instance, Incarnation: before.Instance.Incarnation})
}

// awaitEnd shows how a drain goes on until the instance has ended, and returns errUndrained if it left with
// tasks that it was to hand over.
func awaitEnd(ctx context.Context, e *env, from *local, self control.Target) error {
	watch := control.NewWatch([]control.Target{self})
	show := progress{w: e.errOut, terminal: e.terminal}
	bounded := false // whether the deadline was shown
	for {
		reply, err := from.client.Status(ctx, false)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: the instance goes on stopping", context.Cause(ctx))
		case errors.Is(err, admin.ErrNotRunning):
			return howEnded(e, from.dir, self)
		case err == nil && reply.Instance.State == control.Draining:
			if at := reply.Instance.DeadlineMs; at > 0 && !bounded {
				bounded = true
				show.line(fmt.Sprintf("%s: leaves at %s with what is left", self.Instance, time.UnixMilli(at).Format(time.TimeOnly)))
			}
			if _, statuses, _, err := from.read(ctx); err == nil {
				if all := watch.Observe(statuses, nil, time.Now()); !ended(all) {
					show.update(all)
				}
			}
		}
		select {
		case <-time.After(waitInterval):
		case <-ctx.Done():
		}
	}
}

func howEnded(e *env, dir string, self control.Target) error {
	rec, err := leave.ReadRecord(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	left := ""
	if err == nil && rec.Incarnation.SameRun(self.Incarnation) {
		left = rec.Left
	}
	switch left {
	case control.LeftTimeout:
		return fmt.Errorf("%s %w: the other instances restore them", self.Instance, errUndrained)
	case "":
		left = "stopped"
	}
	fmt.Fprintf(e.out, "%s: %s\n", self.Instance, left)
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
