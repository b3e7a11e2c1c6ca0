package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/config"
)

func newTopology(e *env) *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:   "topology FILE",
		Short: "Check a configuration file and draw what it computes",
		Long: `Checks a configuration file as run does, and draws its subtopologies, topics and stores. The file's
mistakes are printed with their line and column.`,
		Example: `  streamworker topology words.yaml
  streamworker topology words.yaml -o dot | dot -Tsvg > words.svg
  streamworker topology words.yaml -o mermaid`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0], e.lookup, config.Overrides{Offline: true})
			if err != nil {
				return err
			}
			drawing := cfg.Topology.String()
			switch format {
			case "dot":
				drawing = cfg.Topology.DOT()
			case "mermaid":
				drawing = cfg.Topology.Mermaid()
			}
			_, err = fmt.Fprintln(e.out, strings.TrimRight(drawing, "\n"))
			return err
		},
	}
	format.flag(cmd, "text", "dot", "mermaid")
	return cmd
}
