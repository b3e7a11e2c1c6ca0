package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/admin"
)

func newProbe(e *env) *cobra.Command {
	var p place
	var format output
	cmd := &cobra.Command{
		Use:   "probe live|ready",
		Short: "Ask whether the instance on this host is well, for health checks",
		Long: `Asks the instance on this host, as /livez and /readyz do without a listener on TCP. live: it goes on; if not,
only a restart helps. ready: it is a member of the group and each of its tasks runs.
Ends with 0 for yes, 1 for no, 16 if there is no instance.`,
		Example:   `  streamworker probe ready --state-dir /var/lib/streamworker/words`,
		Args:      usageArgs(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"live", "ready"},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := p.hereDir(e)
			if err != nil {
				return err
			}
			c, err := admin.NewClient(dir)
			if err != nil {
				return err
			}
			defer c.Close()
			ask := c.Live
			if args[0] == "ready" {
				ask = c.Ready
			}
			err = ask(cmd.Context())
			switch {
			case format == "json":
				answer := struct {
					OK    bool   `json:"ok"`
					Error string `json:"error,omitempty"`
				}{OK: err == nil}
				if err != nil {
					answer.Error = err.Error()
				}
				return errors.Join(err, json.NewEncoder(e.out).Encode(answer))
			case err == nil:
				_, err = fmt.Fprintln(e.out, "ok")
			}
			return err
		},
	}
	p.here(cmd)
	format.flag(cmd, "text", "json")
	return cmd
}
