package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/doctor"
)

func newDoctor(e *env) *cobra.Command {
	var from runFlags
	var format output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check host, brokers, topics, rights and group, and say what is wrong",
		Long: `Checks whether an instance could run on this host, and whether the application is well: the state directory and limits of this host; each
broker, its version, TLS and SASL; input, output and internal topics with their copies; rights; the group, whether its members run this
configuration, tasks that cannot go on, and clocks. It changes nothing, and may be run beside instances.

Each line is ok, warning (it works, and something is not as it should be), failed (with what to do) or skipped. The exit code is 1 if
a check failed.`,
		Example: `  streamworker doctor -c words.yaml
  streamworker doctor -c words.yaml -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load(e, true)
			if err != nil {
				return err
			}
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			findings, failed := []doctor.Finding{}, 0
			d := doctor.New(cfg, e.patience)
			show := progress{w: e.errOut, terminal: e.terminal && format == "text"}
			if show.terminal {
				d.Asking = func(about string) { show.replace(fmt.Sprintf("%s: asking the brokers, %s at most", about, e.patience)) }
			}
			healthy, err := d.Examine(ctx, func(f doctor.Finding) {
				show.clear()
				findings = append(findings, f)
				if f.Result == doctor.Failed {
					failed++
				}
				if format == "text" {
					fmt.Fprintf(e.out, "%-8s %-16s %s\n", f.Result, f.Check, f.Message)
				}
			})
			show.clear()
			if err == nil && !healthy {
				err = fmt.Errorf("%s failed", count(failed, "check"))
			}
			if format == "json" {
				enc := json.NewEncoder(e.out)
				enc.SetIndent("", "  ")
				enc.SetEscapeHTML(false)
				err = errors.Join(err, enc.Encode(struct {
					OK     bool             `json:"ok"`
					Checks []doctor.Finding `json:"checks"`
				}{healthy && err == nil, findings}))
			}
			return err
		},
	}
	from.register(cmd)
	format.flag(cmd, "text", "json")
	return cmd
}
