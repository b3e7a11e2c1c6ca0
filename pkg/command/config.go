package command

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

func newConfig(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file, or print the schema of such files",
	}
	cmd.AddCommand(newConfigCheck(e), newConfigSchema(e))
	return cmd
}

func newConfigCheck(e *env) *cobra.Command {
	var from runFlags
	var skipFiles bool
	var format output
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Report all mistakes of a configuration, or print what it comes to",
		Long: `Checks a configuration as run does, without Kafka: the file, the environment and the flags, and the certificates
and secrets that it names. All mistakes are reported at once, with file, line and column; the exit code is then 3. Without any it prints
the configuration as it will be used, defaults included and secrets hidden.`,
		Example: `  streamworker config check -c words.yaml
  streamworker config check -c words.yaml --skip-files -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			cfg, err := from.load(e, !skipFiles)
			if format == "json" {
				return printCheck(e, cfg, err)
			}
			if err != nil {
				return err
			}
			text, err := cfg.YAML()
			if err != nil {
				return err
			}
			_, err = e.out.Write(text)
			return err
		},
	}
	from.register(cmd)
	cmd.Flags().BoolVar(&skipFiles, "skip-files", false, "do not read certificates and secrets, e.g. where they are not at hand")
	format.flag(cmd, "text", "json")
	return cmd
}

// mistake is one in the output of config check -o json.
type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // 0: the mistake has no place in the file
	Column  int    `json:"column"` // likewise
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// printCheck prints the result of a check, and returns its error.
func printCheck(e *env, cfg *config.Config, err error) error {
	result := struct {
		OK            bool            `json:"ok"`
		Mistakes      []mistake       `json:"mistakes"`
		Configuration json.RawMessage `json:"configuration"`
	}{OK: err == nil, Mistakes: []mistake{}}
	var problems yamlnode.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			result.Mistakes = append(result.Mistakes, mistake{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message, Hint: p.Hint})
		}
	case err != nil:
		return err
	default:
		if result.Configuration, err = cfg.JSON(); err != nil {
			return err
		}
	}
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return errors.Join(err, enc.Encode(result))
}

func newConfigSchema(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files, for editors",
		Long: `Prints a JSON Schema of configuration files. An editor that knows it completes keys and marks mistakes; config check finds
more than it can.`,
		Example: `  streamworker config schema > streamworker.schema.json
  # and as the first line of the configuration, for editors with a YAML language server:
  # yaml-language-server: $schema=streamworker.schema.json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			text, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = e.out.Write(text)
			return err
		},
	}
}
