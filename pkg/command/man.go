package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a man page of each command into a directory",
		Long:    `Writes a man page of section 1 for each command into a directory, which is made if it does not exist.`,
		Example: `  streamworker man /usr/local/share/man/man1`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would name the day of the run
			header := &doc.GenManHeader{Section: "1", Source: "streamworker " + thisBuild().Version, Manual: "streamworker"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("writing man pages into %s: %w", args[0], err)
			}
			_, err := fmt.Fprintf(e.out, "man pages are in %s\n", args[0])
			return err
		},
	}
}
