package scenario

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// WriteSummary writes a table with a row for each policy of each comparison, and what it cost. A dash stands for
// what was not measured.
func WriteSummary(w io.Writer, all ...Comparison) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tpolicy\trounds\tmoved\trestored\tbalanced after\tdouble\tgap\tlongest\toverload\tpeak")
	for _, c := range all {
		name := strings.TrimSuffix(filepath.Base(c.Scenario), filepath.Ext(c.Scenario))
		for _, v := range c.Variants {
			fmt.Fprintf(t, "%s\t%s\t%s\n", name, v.Name, strings.Join(c.Results[v.Name].Metrics.row(), "\t"))
		}
	}
	return t.Flush()
}

// row are the metrics in the order of WriteSummary's columns.
func (m Metrics) row() []string {
	number := func(format string, v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf(format, *v)
	}
	rounds, restored := fmt.Sprint(m.Rebalances), "-"
	if m.Rounds != nil {
		rounds = fmt.Sprintf("%d of %d", m.Rebalances, *m.Rounds)
	}
	if m.BytesRestored != nil {
		restored = gibibytes(*m.BytesRestored)
	}
	return []string{
		rounds, fmt.Sprint(m.TasksMoved), restored, number("%.1f s", m.SecondsToBalance), number("%.0f s", m.DoubleProcessingTaskSeconds),
		number("%.2f s", m.GapTaskSeconds), number("%.2f s", m.LongestGapSeconds), number("%.0f s", m.OverloadInstanceSeconds), number("%.2f", m.PeakLoad),
	}
}
