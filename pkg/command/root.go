package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/topology"
)

// env is what a command has around it.
type env struct {
	name        string            // of the binary; "": streamworker
	program     *topology.Program // nil: the configuration file says what to compute
	out, errOut io.Writer
	terminal    bool // out is one
	in          io.Reader
	asks        bool // somebody can answer at in
	lookup      func(string) (string, bool)
	environ     func() []string  // all variables, as NAME=VALUE
	signals     <-chan os.Signal // once they are caught
	catch       func()           // makes them come; nil: they do. Until then they end the process
	exit        func(code int)   // ends the process at once
	patience    time.Duration    // with Kafka, of commands
	// serviceAccount is the directory with the credentials of a pod for its Kubernetes.
	serviceAccount string
}

// execute runs one command line and returns the exit code.
func execute(args []string, e *env) int {
	root := newRoot(e)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	if strings.HasPrefix(err.Error(), "unknown command") { // cobra has no type for it
		err = usageError{err}
	}
	fmt.Fprintf(e.errOut, "%s: %v\n", root.Name(), err)
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(e.errOut, "See '%s --help'.\n", cmd.CommandPath())
	}
	return exitCode(err)
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   cmp.Or(e.name, "streamworker"),
		Short: "Stateful stream processing on Apache Kafka whose tasks move without stopping",
		Long: `streamworker runs a stateful stream-processing topology on Apache Kafka. An instance that is marked
as leaving hands its tasks over to the others while the stream keeps flowing, and exits by itself.`,
		Example: `  # Run an instance; run more of them, on other hosts or with other state directories, to share the work.
  streamworker run -c words.yaml

  # Drain the instance on this host and wait until it has left.
  streamworker leave -c words.yaml --wait

  # See the group from anywhere.
  streamworker status --brokers kafka:9092 --app words`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(e.out)
	root.SetErr(e.errOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		newRun(e), newStop(e), newLeave(e), newSwap(e), newStatus(e), newAdvise(e), newQuery(e), newProbe(e), newReset(e), newDoctor(e), newSimulate(e), newDev(e), newTopology(e), newTest(e), newConfig(e), newVersion(e), newMan(e),
		&cobra.Command{Use: "exit-codes", Short: "Exit codes of all commands", Long: exitCodesHelp},
	)
	if e.name != "" {
		renamed(root, e.name)
	}
	strict(root)
	return root
}

// strict makes mistakes of what cobra answers with a help text and success: an unknown command below another one, an unknown
// topic of help.
func strict(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch {
		case cmd.Name() == "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return usageError{fmt.Errorf("there is no help for %q", strings.Join(args, " "))}
				}
				return nil
			}
		case cmd.HasSubCommands():
			cmd.Args = usageArgs(cobra.NoArgs)
			cmd.DisableFlagsInUseLine = true
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// renamed makes the examples of a command and of those below it call the binary by its name.
func renamed(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  streamworker ", "  "+name+" ")
	for _, sub := range cmd.Commands() {
		renamed(sub, name)
	}
}

// variables are the names of all environment variables.
func (e *env) variables() []string {
	if e.environ == nil {
		return nil
	}
	var names []string
	for _, v := range e.environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}

// usageArgs makes a mistake in the arguments a mistake in the usage, and says what is wanted.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		switch {
		case err == nil:
			return nil
		case cmd.HasSubCommands(): // the argument should have been one of them
		case len(args) == 0:
			err = fmt.Errorf("an argument is missing: %s", cmd.UseLine())
		default:
			err = fmt.Errorf("wrong arguments: %s: %s", strings.Join(args, " "), cmd.UseLine())
		}
		return usageError{err}
	}
}

// caught are the signals, of which none ends the process any more: only for commands that listen.
func (e *env) caught() <-chan os.Signal {
	if e.catch != nil {
		e.catch()
	}
	return e.signals
}

// interruptible is a context that ends at the first signal; a second one ends the process. The caller must call stop.
func (e *env) interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, stopped, done := e.caught(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case <-signals:
				if !first {
					e.exit(exitInterrupted)
				}
				cancel(errInterrupted)
			case <-stopped:
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); close(stopped); <-done }
}

// output is the value of -o.
type output string

func (o *output) flag(cmd *cobra.Command, lawful ...string) {
	*o = output(lawful[0])
	cmd.Flags().VarP(&choice{(*string)(o), lawful}, "output", "o", strings.Join(lawful, " or "))
}

// choice is a flag with few lawful values.
type choice struct {
	value  *string
	lawful []string
}

func (f *choice) String() string { return *f.value }
func (f *choice) Type() string   { return "choice" }
func (f *choice) Set(s string) error {
	for _, l := range f.lawful {
		if s == l {
			*f.value = s
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(f.lawful, " or "))
}
