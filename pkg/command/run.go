package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/config"
)

func newRun(e *env) *cobra.Command {
	var from runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run an instance",
		Long: `Runs an instance of an application until it is stopped or has left. It shares the application's tasks
with all other instances that are run with the same file.

SIGTERM and Ctrl-C do what on_terminate says: keep commits and stays a member of the group, so that a restart
gets its tasks back; release leaves the group, so that others take the tasks at once; drain hands the tasks
over first, within scale_down_timeout. A second SIGTERM ends a drain; a second Ctrl-C exits at once. No record
is lost in any case.

The exit code says why it ended: see streamworker exit-codes.`,
		Example: `  streamworker run -c words.yaml
  streamworker run -c words.yaml --instance-id worker-2 --state-dir /data/words-2 --label pool=blue`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load(e, true)
			if err != nil {
				return err
			}
			e.caught() // those that come while it starts count, too
			return serve(cmd.Context(), e, cfg)
		},
	}
	from.register(cmd)
	return cmd
}

// runFlags are the flags that make up a configuration.
type runFlags struct {
	file      string
	overrides config.Overrides
	labels    []string
}

func (r *runFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&r.file, "config", "c", "", "configuration `file` of the application")
	f.StringSliceVar(&r.overrides.Brokers, "brokers", nil, "Kafka's `addresses`, instead of kafka.brokers")
	f.StringVar(&r.overrides.InstanceID, "instance-id", "", "`id` of this instance, instead of instance_id")
	f.StringVar(&r.overrides.StateDir, "state-dir", "", "`directory` for state, instead of state.dir")
	f.StringArrayVar(&r.labels, "label", nil, "a `name=value` that selectors find, added to labels; may be given several times")
}

var errNoFile = usageError{errors.New("which application? -c FILE")}

// load reads the configuration, and on request the certificates and secrets that it names.
func (r *runFlags) load(e *env, files bool) (*config.Config, error) {
	if r.file == "" {
		return nil, errNoFile
	}
	var err error
	o := r.overrides
	o.CheckFiles, o.Variables, o.Program = files, e.variables(), e.program
	if o.Labels, err = parseLabels(r.labels); err != nil {
		return nil, usageError{err}
	}
	return config.Load(r.file, e.lookup, o)
}

func parseLabels(pairs []string) (map[string]string, error) {
	labels := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--label %s: want name=value, e.g. pool=blue", p)
		}
		labels[name] = value
	}
	return labels, nil
}
