package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build says what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty: not built from a checkout
	Modified bool   `json:"modified"` // the checkout had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(version, info.Main.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersion(e *env) *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this binary",
		Example: "  streamworker version -o json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if format == "json" {
				return json.NewEncoder(e.out).Encode(b)
			}
			commit := cmp.Or(b.Commit, "unknown")
			if b.Modified {
				commit += " with changes"
			}
			_, err := fmt.Fprintf(e.out, "streamworker %s\ncommit %s\n%s %s\n", cmp.Or(b.Version, "unknown"), commit, b.Go, b.Platform)
			return err
		},
	}
	format.flag(cmd, "text", "json")
	return cmd
}
