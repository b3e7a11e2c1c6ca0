package command

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/cases"
	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
)

// errCases is returned by test when a case failed; the report says why.
var errCases = errors.New("not all cases passed")

func newTest(e *env) *cobra.Command {
	t := testCommand{env: e}
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run a topology's test cases, or records of your own, without Kafka",
		Long: `Runs the cases that are written beside a topology: for words.yaml those in words_test.yaml. They name inputs, with
timestamps, and what is expected of outputs, tables and stores; docs/testing.md has the format. What is not as
expected is shown with file and line. Exit code 1: a case failed; 3: a file has mistakes.

--input FILE runs the records of that file through one topology instead, and prints what comes out. They are handled
one at a time, each to its end, repartition topics included. FILE is JSON, - is standard input:

  {"inputs":[{"topic":"lines","key":null,"value":"a b","ts":1000}],"advance_wall_clock_ms":0}

It prints

  {"outputs":{TOPIC:[{"i":0,"key":"a","value":1,"ts":1000,"window_start":null,"window_end":null}]},"tables":{TOPIC:{KEY:VALUE}}}

with every output topic. i is the index of the input that caused the record, or the number of inputs where the wall
clock did, which moves behind the last input. Keys and values are JSON values by the format of their topic. Tables
have the last value of each key of each output topic, without keys whose last value is null; a key with a window is
written key@start/end. No Kafka is used.`,
		Example: `  streamworker test examples/*.yaml
  streamworker test words.yaml --run 'any case' -o json
  streamworker test --input records.json words.yaml`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if t.input != "" {
				return t.runInput(args)
			}
			return t.runCases(args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.input, "input", "", "run the records of this JSON `file` through one topology and print what comes out; -: standard input")
	f.StringVar(&t.pattern, "run", "", "only cases whose names match this regular `expression`")
	t.format.flag(cmd, "text", "json")
	return cmd
}

type testCommand struct {
	env     *env
	input   string
	pattern string
	format  output
}

func (t *testCommand) runCases(args []string) error {
	pattern, err := regexp.Compile(t.pattern)
	if err != nil {
		return usageError{fmt.Errorf("--run: %w", err)}
	}
	var paths []string
	for _, arg := range args {
		if path, _ := cases.Paths(arg); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	report := cases.Report{Files: []cases.FileReport{}}
	var mistakes error
	for _, path := range paths {
		f, err := cases.Load(path, t.env.lookup, t.env.program)
		if err != nil {
			mistakes = errors.Join(mistakes, err)
			continue
		}
		outcomes, err := f.Run(pattern.MatchString)
		if err != nil {
			return err
		}
		report.Add(f, outcomes)
	}
	write := report.WriteText
	if t.format == "json" {
		write = report.WriteJSON
	}
	if err := write(t.env.out); err != nil {
		return err
	}
	switch {
	case mistakes != nil:
		return mistakes
	case report.Failed > 0:
		return errCases
	case report.Passed == 0:
		return usageError{fmt.Errorf("--run %q: no case is called so", t.pattern)}
	}
	return nil
}

func (t *testCommand) runInput(args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("--input takes one topology, got %d", len(args))}
	}
	if t.pattern != "" {
		return usageError{errors.New("--run chooses among cases: it does not go with --input")}
	}
	cfg, err := config.Load(args[0], t.env.lookup, config.Overrides{Offline: true, Program: t.env.program})
	if err != nil {
		return err
	}
	script, err := t.script()
	if err != nil {
		return fmt.Errorf("%s: %w", t.input, err)
	}
	result, err := script.Run(cfg.Topology)
	if err != nil {
		return fmt.Errorf("%s: %w", t.input, err)
	}
	return result.WriteJSON(t.env.out)
}

func (t *testCommand) script() (*topologytest.Script, error) {
	if t.input == "-" {
		return topologytest.ReadScript(t.env.in)
	}
	f, err := os.Open(t.input)
	if err != nil {
		return nil, err
	}
	s, err := topologytest.ReadScript(f)
	return s, errors.Join(err, f.Close())
}
