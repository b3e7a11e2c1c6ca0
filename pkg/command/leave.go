package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
)

func newLeave(e *env) *cobra.Command {
	l := &leaveCommand{env: e}
	var format output
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Drain instances: hand their tasks over, then exit",
		Long: `Marks instances as leaving. The others warm up copies of their tasks; each task changes hands when its
copy has caught up, while the stream keeps flowing; an instance with nothing left leaves the group and exits.

Without --instance and --selector it means the instance on this host. A selector that leaves no instance to
take the tasks is refused, unless --all is there.`,
		Example: `  # The instance on this host; return when it has left.
  streamworker leave -c words.yaml --wait

  # From anywhere: one instance, or all with a label.
  streamworker leave --brokers kafka:9092 --app words --instance worker-3
  streamworker leave --brokers kafka:9092 --app words --selector pool=blue --wait

  # Give up what is left after ten minutes; the others then restore it as after a failure.
  streamworker leave -c words.yaml --timeout 10m

  # Stay after all.
  streamworker leave -c words.yaml --cancel`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l.json = format == "json"
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return l.run(ctx)
		},
	}
	l.place.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&l.instance, "instance", "", "`id` of the instance")
	f.StringVar(&l.selector, "selector", "", "instances with these `labels`, e.g. pool=blue")
	f.StringVar(&l.timeout, "timeout", "", "`time` after which an instance leaves with what is left, e.g. 10m, or none; default: its scale_down_timeout")
	f.BoolVar(&l.all, "all", false, "mark them even if the selector leaves no instance to take their tasks")
	f.BoolVar(&l.now, "now", false, "give everything up at once")
	f.BoolVar(&l.cancel, "cancel", false, "take the mark back")
	f.BoolVar(&l.wait, "wait", false, "show progress and return when the instances have left")
	format.flag(cmd, "text", "json")
	return cmd
}

type leaveCommand struct {
	env      *env
	json     bool
	place    place
	instance string
	selector string
	all      bool
	timeout  string
	now      bool
	cancel   bool
	wait     bool
}

func (l *leaveCommand) run(ctx context.Context) error {
	deadline, sel, err := l.parse(time.Now())
	if err != nil {
		return err
	}
	byName := l.instance != "" || sel != nil
	p, err := l.place.resolve(l.env, byName)
	if err != nil {
		return err
	}
	if p.stateDir != "" {
		return l.here(ctx, p, deadline)
	}
	if !byName {
		return usageError{errors.New("say which instances: --instance ID or --selector label=value")}
	}
	return l.remotely(ctx, p, sel, deadline)
}

// parse checks what the flags say together.
func (l *leaveCommand) parse(now time.Time) (leave.Deadline, control.Selector, error) {
	wrong := func(format string, args ...any) (leave.Deadline, control.Selector, error) {
		return leave.Default, nil, usageError{fmt.Errorf(format, args...)}
	}
	var sel control.Selector
	if l.selector != "" {
		var err error
		if sel, err = control.ParseSelector(l.selector); err != nil {
			return wrong("--selector: %w", err)
		}
	}
	switch {
	case l.instance != "" && sel != nil:
		return wrong("--instance and --selector exclude each other")
	case l.cancel && (l.now || l.wait || l.timeout != "" || l.all):
		return wrong("--cancel goes with neither --now, --wait, --timeout nor --all")
	case l.all && sel == nil:
		return wrong("--all goes with --selector")
	case l.now && l.timeout != "":
		return wrong("--now and --timeout exclude each other")
	case l.now:
		return leave.Now, sel, nil
	}
	d, err := deadline(l.timeout, now)
	if err != nil {
		return wrong("%w; to give everything up at once: --now", err)
	}
	return d, sel, nil
}

// deadline reads the value of --timeout.
func deadline(timeout string, now time.Time) (leave.Deadline, error) {
	switch timeout {
	case "":
		return leave.Default, nil
	case "none":
		return leave.Never, nil
	}
	d, err := time.ParseDuration(timeout)
	if err != nil || d <= 0 {
		return leave.Default, fmt.Errorf("--timeout %s: want a time like 90s or 10m, or none", timeout)
	}
	return leave.At(now.Add(d)), nil
}

// here marks the instance of this host through its socket.
func (l *leaveCommand) here(ctx context.Context, p *place, d leave.Deadline) error {
	from, err := newLocal(p.stateDir)
	if err != nil {
		return err
	}
	defer from.close()
	_, statuses, _, err := from.read(ctx)
	if err != nil {
		return err
	}
	self := control.Target{Instance: statuses[0].Instance, Incarnation: statuses[0].Incarnation}
	if l.cancel {
		err = from.client.Cancel(ctx)
	} else {
		err = from.client.Leave(ctx, d, requester())
	}
	if err != nil {
		return err
	}
	return l.finish(ctx, from, []control.Target{self})
}

// remotely marks instances through the control topic.
func (l *leaveCommand) remotely(ctx context.Context, p *place, sel control.Selector, d leave.Deadline) error {
	from, err := newRemote(l.env, p)
	if err != nil {
		return err
	}
	defer from.close()
	_, statuses, _, err := from.read(ctx)
	if err != nil {
		return err
	}
	targets, err := control.Pick(statuses, l.instance, sel, time.Now())
	if err != nil {
		return fmt.Errorf("application %s: %w", p.app, err)
	}
	switch {
	case l.cancel:
		err = from.cancel(ctx, targets)
	case sel != nil && !l.all && len(control.Staying(statuses, targets, time.Now())) == 0:
		err = fmt.Errorf("application %s: the selector leaves no instance to take the tasks: %s would all be leaving. "+
			"Start others first, or mark them nevertheless by --all: then they keep their tasks until their timeout", p.app, names(targets))
	default:
		err = from.mark(ctx, targets, d, "")
	}
	if err != nil {
		return err
	}
	return l.finish(ctx, from, targets)
}

// mark marks the targets, all at once; swap is the swap that the marks are of.
func (r *remote) mark(ctx context.Context, targets []control.Target, d leave.Deadline, swap string) error {
	marks := make([]control.Mark, len(targets))
	for i, t := range targets {
		marks[i] = markOf(t, d)
		marks[i].Swap = swap
	}
	return r.ask(ctx, func(ctx context.Context) error { return r.bus.PutMarks(ctx, marks...) })
}

// cancel takes the marks of the targets back.
func (r *remote) cancel(ctx context.Context, targets []control.Target) error {
	for _, t := range targets {
		if err := r.ask(ctx, func(ctx context.Context) error { return r.bus.Cancel(ctx, t.Instance, t.Incarnation) }); err != nil {
			return fmt.Errorf("instance %s: %w", t.Instance, err)
		}
	}
	return nil
}

// names are the ids of the targets, not all if there are many.
func names(targets []control.Target) string {
	var ids []string
	for _, t := range targets[:min(len(targets), listed)] {
		ids = append(ids, t.Instance)
	}
	if more := len(targets) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

func markOf(t control.Target, d leave.Deadline) control.Mark {
	m := control.Mark{Instance: t.Instance, Incarnation: t.Incarnation, By: requester(), AtMs: time.Now().UnixMilli(), Now: d == leave.Now}
	if at, ok := d.Time(); ok {
		m.DeadlineMs = at.UnixMilli()
	} else if d == leave.Never {
		m.DeadlineMs = control.NoDeadline
	}
	return m
}

// finish says what was done and, if asked, waits for it to take effect.
func (l *leaveCommand) finish(ctx context.Context, from source, targets []control.Target) error {
	if l.wait {
		return l.await(ctx, from, targets)
	}
	done := "marked as leaving"
	if l.cancel {
		done = "cancelled"
	}
	results := make([]result, len(targets))
	for i, t := range targets {
		results[i] = result{ID: t.Instance, Outcome: done}
	}
	return l.report(results)
}

// result is one instance in the output of leave and stop.
type result struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

func (l *leaveCommand) report(results []result) error { return report(l.env.out, l.json, results) }

// report prints what became of instances.
func report(w io.Writer, asJSON bool, results []result) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string][]result{"instances": results})
	}
	for _, r := range results {
		fmt.Fprintf(w, "%s: %s\n", r.ID, r.Outcome)
	}
	return nil
}

// requester names the caller for the logs of the instances: user@host.
func requester() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return strings.TrimSpace(name + "@" + host)
}
