package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/scenario"
)

func newSimulate(e *env) *cobra.Command {
	s := simulateCommand{env: e}
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Run a scenario against the assignor alone, rebalance by rebalance",
		Long: `Runs a scenario file: a group, and instances that join, leave, get ready or crash. It prints what each
instance joins a rebalance with and what it is assigned, with the assignor that real instances use, and what
it all costs. No Kafka is needed.`,
		Example: `  streamworker simulate examples/scenarios/scale-down.yaml
  streamworker simulate examples/scenarios/scale-down.yaml -o json
  streamworker simulate examples/scenarios/eager-or-stable.yaml --compare eager,stable --plot compare.html`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args[0]) },
	}
	s.format.flag(cmd, "text", "json")
	cmd.Flags().StringSliceVar(&s.modes, "compare", nil, "run it under each of these learner `modes`: eager,stable")
	cmd.Flags().StringVar(&s.plot, "plot", "", "draw it into this HTML `file`")
	return cmd
}

type simulateCommand struct {
	env    *env
	format output
	modes  []string
	plot   string
}

func (s *simulateCommand) run(file string) error {
	modes, err := parseModes(s.modes)
	if err != nil {
		return err
	}
	scene, err := scenario.Load(file)
	if err != nil {
		return err
	}
	scene.GroupBytes = groupBytes
	if len(modes) == 0 {
		return s.single(scene, file)
	}
	c, err := scenario.Compare(scene, modes...)
	if err != nil {
		return err
	}
	if err := s.draw(c, file); err != nil {
		return err
	}
	if s.format == "json" {
		return c.WriteJSON(s.env.out)
	}
	return c.WriteText(s.env.out)
}

// single runs the scenario under its own policy.
func (s *simulateCommand) single(scene *scenario.Scenario, file string) error {
	r, err := scene.Run()
	if err != nil {
		return err
	}
	const mode = "the file's policy"
	c := scenario.Comparison{Modes: []scenario.Learners{mode}, Results: map[scenario.Learners]scenario.Result{mode: r}}
	if err := s.draw(c, file); err != nil {
		return err
	}
	if s.format == "json" {
		return r.WriteJSON(s.env.out)
	}
	return r.WriteText(s.env.out)
}

func (s *simulateCommand) draw(c scenario.Comparison, file string) error {
	if s.plot == "" {
		return nil
	}
	f, err := os.Create(s.plot)
	if err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	if err := errors.Join(c.Plot(f, filepath.Base(file)), f.Close()); err != nil {
		return fmt.Errorf("--plot %s: %w", s.plot, err)
	}
	return nil
}

func parseModes(names []string) ([]scenario.Learners, error) {
	var modes []scenario.Learners
	for _, n := range names {
		mode := scenario.Learners(n)
		switch {
		case mode != scenario.Eager && mode != scenario.Stable:
			return nil, usageError{fmt.Errorf("--compare %q: want eager, stable or both, with a comma in between", n)}
		case slices.Contains(modes, mode):
			return nil, usageError{fmt.Errorf("--compare names %s twice", n)}
		}
		modes = append(modes, mode)
	}
	return modes, nil
}

// groupBytes measures the group's record as for tasks with one input topic.
func groupBytes(in assign.Input, plan assign.Plan) int {
	subs := []group.Subtopology{{Topics: []string{"input"}, Partitions: int32(len(in.Tasks)), Stateful: true}}
	return group.RecordSize("scenario", subs, in.Members, plan)
}
