package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/reset"
)

func newReset(e *env) *cobra.Command {
	r := &resetCommand{env: e}
	var format output
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Forget offsets, internal topics and local state, to process everything anew",
		Long: `Takes a stopped application back to where it has read nothing: deletes its consumer group with all committed
offsets, its changelogs, repartition topics and control topic, and the state of its tasks on this host. The next run reads its inputs
from where "start" says, and makes the topics anew. Input and output topics are left alone.

It shows what it will delete and asks before it does. While an instance is alive it refuses. After an error or an interruption,
run it again: it goes on with what is left. Start no instance before it has come to its end.

For those who know kafka-streams-application-reset: input and internal topics need not be named, as the file has them; nothing but what the
file has is deleted; local state of this host is included; members are not removed by force; to begin elsewhere than "start" says,
let kafka-consumer-groups --reset-offsets place the inputs' offsets after the reset.`,
		Example: `  streamworker reset -c words.yaml --dry-run
  streamworker reset -c words.yaml

  # For scripts.
  streamworker reset -c words.yaml --yes -o json

  # One store begins empty, as after a change of its window.
  streamworker reset -c words.yaml --store counts

  # On the other hosts of the application, to free their disks (their instances do it at their next start anyway).
  streamworker reset -c words.yaml --state`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.json = format == "json"
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return r.run(ctx)
		},
	}
	r.from.register(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.scope.Offsets, "offsets", false, "only the group with its offsets, or together with the following")
	f.BoolVar(&r.scope.Topics, "topics", false, "only the internal topics, or together with the others")
	f.BoolVar(&r.scope.State, "state", false, "only the local state of this host, or together with the others")
	f.StringArrayVar(&r.scope.Stores, "store", nil, "only the changelog of the store of this `name`, or together with the others; may be given several times")
	f.BoolVar(&r.dryRun, "dry-run", false, "only show what would be deleted")
	f.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	format.flag(cmd, "text", "json")
	return cmd
}

type resetCommand struct {
	env    *env
	from   runFlags
	scope  reset.Scope
	dryRun bool
	yes    bool
	json   bool
}

// errDeclined is returned when the answer to a question is not yes.
var errDeclined = errors.New("nothing was deleted")

func (r *resetCommand) run(ctx context.Context) error {
	cfg, err := r.from.load(r.env, true)
	if err != nil {
		return err
	}
	if !r.dryRun && !r.yes && (r.json || !r.env.asks) {
		return usageError{errors.New("nobody can be asked here: --yes to delete, --dry-run to see what would be deleted")}
	}
	if s := r.scope; !s.Offsets && !s.Topics && !s.State && len(s.Stores) == 0 {
		r.scope = reset.All
	}
	plan, err := r.reset(ctx, cfg)
	if r.json {
		return errors.Join(err, r.print(plan, err))
	}
	return err
}

// reset returns the plan, too, with what was done of it; nil if there is none.
func (r *resetCommand) reset(ctx context.Context, cfg *config.Config) (*reset.Plan, error) {
	cl, err := commandClient(cfg)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := r.env.patiently("looking for Kafka", r.env.patience, func() error { return kafka.Reach(ctx, cl, r.env.patience) }); err != nil {
		return nil, orInterrupted(ctx, err)
	}
	resetter := reset.New(cfg, cl, control.NewBus(cl, cfg.App, slog.New(slog.DiscardHandler)))
	var plan *reset.Plan
	err = r.env.patiently("asking Kafka what there is", r.env.patience, func() (err error) {
		plan, err = r.plan(ctx, resetter)
		return err
	})
	if err != nil {
		return nil, orInterrupted(ctx, err)
	}
	if !r.json {
		writePlan(r.env.out, plan)
	}
	if r.dryRun || len(plan.Steps) == 0 {
		return plan, nil
	}
	if !r.yes {
		if err := r.ask(ctx, plan); err != nil {
			return plan, err
		}
	}
	return plan, r.carryOut(ctx, resetter, plan)
}

// plan gives Kafka some time to answer.
func (r *resetCommand) plan(ctx context.Context, resetter *reset.Resetter) (*reset.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, r.env.patience)
	defer cancel()
	return resetter.Plan(ctx, r.scope)
}

// resetPatience bounds the deletions; a broker takes seconds for large topics at most.
const resetPatience = 2 * time.Minute

func (r *resetCommand) carryOut(ctx context.Context, resetter *reset.Resetter, plan *reset.Plan) error {
	bounded, cancel := context.WithTimeout(ctx, resetPatience)
	defer cancel()
	show, end, done := progress{w: r.env.errOut}, time.Now().Add(resetPatience), 0
	next := func() {
		if r.env.terminal && !r.json && done < len(plan.Steps) {
			show.replace(fmt.Sprintf("deleting %s, at most %s more", plan.Steps[done].String(), time.Until(end).Round(time.Second)))
		}
	}
	next()
	err := resetter.Run(bounded, plan, func(s reset.Step) {
		show.clear()
		if !r.json {
			fmt.Fprintln(r.env.out, "deleted "+s.String())
		}
		done++
		next()
	})
	show.clear()
	if err == nil && !r.json {
		fmt.Fprintf(r.env.out, "%s is reset\n", plan.App)
	}
	return err
}

// ask returns errDeclined unless the answer is yes.
func (r *resetCommand) ask(ctx context.Context, plan *reset.Plan) error {
	fmt.Fprintf(r.env.out, "\nDelete this of %s? [y/N] ", plan.App)
	answer := make(chan string, 1)
	go func() { // ends with the answer, or with the process: a read of a terminal cannot be interrupted
		line, _ := bufio.NewReader(r.env.in).ReadString('\n') // the end of the input is no yes
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		fmt.Fprintln(r.env.out)
		return fmt.Errorf("%w: %w", context.Cause(ctx), errDeclined)
	}
}

func (r *resetCommand) print(plan *reset.Plan, err error) error {
	result := struct {
		*reset.Plan
		DryRun bool   `json:"dry_run"`
		OK     bool   `json:"ok"`
		Error  string `json:"error,omitempty"`
	}{Plan: plan, DryRun: r.dryRun, OK: err == nil}
	if err != nil {
		result.Error = err.Error()
	}
	enc := json.NewEncoder(r.env.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(result)
}

// commandClient is the client of a command that has a configuration.
func commandClient(cfg *config.Config) (*kgo.Client, error) {
	opts := append(kafka.NewConnector(cfg.Kafka.Connection, slog.New(slog.DiscardHandler)).Options(nil), kgo.ClientID("streamworker-command"))
	cl, err := kgo.NewClient(append(opts, control.Opts()...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka.brokers: %w", err)
	}
	return cl, nil
}

// orInterrupted is err, or why ctx has ended.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
