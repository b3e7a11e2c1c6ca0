package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/config"
)

func newRun(e *env) *cobra.Command {
	var file string
	var o config.Overrides
	var labels []string
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
			if file == "" {
				return usageError{fmt.Errorf("which application? -c FILE")}
			}
			var err error
			if o.Labels, err = parseLabels(labels); err != nil {
				return usageError{err}
			}
			o.CheckFiles = true
			cfg, err := config.Load(file, e.lookup, o)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), e, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "config", "c", "", "configuration `file` of the application")
	f.StringSliceVar(&o.Brokers, "brokers", nil, "Kafka's `addresses`, instead of kafka.brokers")
	f.StringVar(&o.InstanceID, "instance-id", "", "`id` of this instance, instead of instance_id")
	f.StringVar(&o.StateDir, "state-dir", "", "`directory` for state, instead of state.dir")
	f.StringArrayVar(&labels, "label", nil, "a `name=value` that selectors find, added to labels; may be given several times")
	return cmd
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
