package command

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/streamworker/streamworker/pkg/reset"
)

// writePlan prints what a reset deletes, and what not.
func writePlan(w io.Writer, p *reset.Plan) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(p.Steps) == 0 {
		fmt.Fprintf(t, "%s: nothing to delete\n", p.App)
	} else {
		fmt.Fprintf(t, "%s: to be deleted\n\n", p.App)
	}
	for _, s := range p.Steps {
		switch s.Kind {
		case reset.Group:
			fmt.Fprintf(t, "  group\t%s\t%s\n", s.Name, offsets(s.Offsets))
		case reset.Topic:
			fmt.Fprintf(t, "  topic\t%s\t%s, %s\n", s.Name, count(s.Partitions, "partition"), s.Purpose)
		case reset.Task:
			fmt.Fprintf(t, "  directory\t%s\t%s, local state\n", filepath.Join(p.StateDir, "tasks", s.Name), size(s.Bytes))
		case reset.Journal:
			fmt.Fprintf(t, "  file\t%s\tthe mark of a drain that a restart would go on with\n", filepath.Join(p.StateDir, s.Name))
		}
	}
	fmt.Fprintf(t, "\nnot touched\n\n")
	for _, s := range p.Stays {
		fmt.Fprintf(t, "  %s\n", s)
	}
	for _, s := range p.Warnings {
		fmt.Fprintf(t, "\nMIND: %s\n", s)
	}
	_ = t.Flush() // as any other output
}

// offsets says for which topics a group has some.
func offsets(topics []reset.TopicOffsets) string {
	if len(topics) == 0 {
		return "no committed offsets"
	}
	text := "committed offsets of"
	for i, t := range topics {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s (%s)", t.Topic, count(len(t.Partitions), "partition"))
	}
	return text
}

// size prints bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return count(int(n), "byte")
	}
	value, units := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for ; value >= unit && len(units) > 1; units = units[1:] {
		value /= unit
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}
