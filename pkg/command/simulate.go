package command

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/scenario"
)

func newSimulate(e *env) *cobra.Command {
	s := simulateCommand{env: e}
	cmd := &cobra.Command{
		Use:   "simulate FILE...",
		Short: "Run scenarios against the assignor alone, rebalance by rebalance",
		Long: `Runs a scenario file: a group, and instances that join, leave, restart, get ready or crash. It prints what each
instance joins a rebalance with and what it is assigned, with the assignor that real instances use, and what
it all costs. No Kafka is needed. With -o summary it prints a line for each file and policy instead.

A policy of --compare is eager, stable, or one of balancing_factor, max_learners and standbys with its value;
several with a plus in between; or file for that of the file.`,
		Example: `  streamworker simulate examples/scenarios/scale-down.yaml
  streamworker simulate examples/scenarios/scale-down.yaml -o json
  streamworker simulate examples/scenarios/eager-or-stable.yaml --compare eager,stable --plot compare.html
  streamworker simulate examples/scenarios/*.yaml --compare eager,stable,eager+balancing_factor=4 -o summary`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args) },
	}
	s.format.flag(cmd, "text", "json", "summary")
	cmd.Flags().StringSliceVar(&s.policies, "compare", nil, "run it under each of these `policies`, e.g. eager,stable")
	cmd.Flags().StringVar(&s.plot, "plot", "", "draw it into this HTML `file`")
	return cmd
}

type simulateCommand struct {
	env      *env
	format   output
	policies []string
	plot     string
}

func (s *simulateCommand) run(files []string) error {
	variants, err := parseVariants(s.policies)
	if err != nil {
		return err
	}
	if len(files) > 1 && (s.format != "summary" || s.plot != "") {
		return usageError{errors.New("several files are for -o summary only, without --plot")}
	}
	if len(variants) == 0 {
		variants = []scenario.Variant{scenario.AsWritten()}
	}
	var all []scenario.Comparison
	for _, file := range files {
		scene, err := scenario.Load(file)
		if err != nil {
			return err
		}
		scene.GroupBytes = groupBytes
		c, err := scenario.Compare(scene, variants...)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := s.draw(all[0]); err != nil {
		return err
	}
	return s.print(all)
}

func (s *simulateCommand) print(all []scenario.Comparison) error {
	c, single := all[0], len(s.policies) == 0
	only := c.Results[c.Variants[0].Name]
	switch {
	case s.format == "summary":
		return scenario.WriteSummary(s.env.out, all...)
	case s.format == "json" && single:
		return only.WriteJSON(s.env.out)
	case s.format == "json":
		return c.WriteJSON(s.env.out)
	case single:
		return only.WriteText(s.env.out)
	}
	return c.WriteText(s.env.out)
}

func (s *simulateCommand) draw(c scenario.Comparison) error {
	if s.plot == "" {
		return nil
	}
	f, err := os.Create(s.plot)
	if err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	if err := errors.Join(c.Plot(f), f.Close()); err != nil {
		return fmt.Errorf("--plot %s: %w", s.plot, err)
	}
	return nil
}

func parseVariants(texts []string) (variants []scenario.Variant, err error) {
	for i, text := range texts {
		v, err := scenario.ParseVariant(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--compare: %w", err)}
		}
		if slices.Contains(texts[:i], text) {
			return nil, usageError{fmt.Errorf("--compare names %s twice", text)}
		}
		variants = append(variants, v)
	}
	return variants, nil
}

// groupBytes measures the group's record as for tasks with one input topic.
func groupBytes(in assign.Input, plan assign.Plan) int {
	subs := []group.Subtopology{{Topics: []string{"input"}, Partitions: int32(len(in.Tasks)), Stateful: true}}
	return group.RecordSize("scenario", subs, in.Members, plan)
}
