package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/topology/draw"
)

func newTopology(e *env) *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:   "topology FILE",
		Short: "Check a configuration file and draw what it computes",
		Long: `Checks a configuration file as run does, and draws its streams, stores, topics and subtopologies: as text, for Graphviz (dot)
or Mermaid, as an SVG image that needs neither, or as JSON. The file's mistakes are printed with their line and column. No Kafka
is used.`,
		Example: `  streamworker topology words.yaml
  streamworker topology words.yaml --format svg > words.svg
  streamworker topology words.yaml --format mermaid`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0], e.lookup, config.Overrides{Offline: true, Program: e.program})
			if err != nil {
				return err
			}
			top := cfg.Topology
			drawing := ""
			switch format {
			case "dot":
				drawing = draw.DOT(top.App, top.Graph())
			case "mermaid":
				drawing = draw.Mermaid(top.Graph())
			case "svg":
				drawing = draw.SVG(top.App, top.Graph())
			case "json":
				enc := json.NewEncoder(e.out)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				return enc.Encode(top.Graph())
			default:
				drawing = top.String()
			}
			_, err = fmt.Fprintln(e.out, strings.TrimRight(drawing, "\n"))
			return err
		},
	}
	lawful := []string{"text", "dot", "mermaid", "svg", "json"}
	format.flag(cmd, lawful...)
	cmd.Flags().Var(&choice{(*string)(&format), lawful}, "format", "the same as --output")
	return cmd
}
