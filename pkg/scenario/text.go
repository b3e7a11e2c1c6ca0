package scenario

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteText writes the result in the notation of the design that the assignor follows, one block for each
// rebalance.
func (r Result) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, block := range r.blocks() {
		for _, line := range block {
			b.WriteString(line + "\n")
		}
		b.WriteString("\n")
	}
	for _, line := range r.summary() {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// blocks are the lines of each rebalance, after those of the start.
func (r Result) blocks() [][]string {
	blocks := [][]string{{r.start}}
	for i, x := range r.Rebalances {
		blocks = append(blocks, x.lines(i+1))
	}
	return blocks
}

var ordinals = []string{"First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth", "Eleventh", "Twelfth"}

func (x Rebalance) lines(number int) []string {
	heading := fmt.Sprintf("#Rebalance %d", number)
	if number <= len(ordinals) {
		heading = "#" + ordinals[number-1] + " Rebalance"
	}
	lines := []string{heading, "Trigger: " + x.Trigger}
	if x.at > 0 {
		lines[1] += fmt.Sprintf(" (after %s)", seconds(x.at))
	}
	lines = append(lines, "Members join with following status:")
	names := slices.Sorted(maps.Keys(x.Joined))
	for _, name := range names {
		m := x.Joined[name]
		lines = append(lines, "\t"+status(name, m.Assigned, m.Revoked, m.Learning, m.Standby))
	}
	lines = append(lines, x.leader+" performs task assignments:")
	for _, name := range names {
		m := x.Assigned[name]
		lines = append(lines, "\t"+status(name, m.Assigned, m.Revoked, m.Learning, m.Standby))
	}
	for _, name := range x.left {
		lines = append(lines, name+" has no task left and shuts down.")
	}
	return lines
}

func status(name string, assigned, revoked, learning, standby []string) string {
	text := fmt.Sprintf("%s(assigned: %s, revoked: %s, learning: %s", name, list(assigned), list(revoked), list(learning))
	if len(standby) > 0 {
		text += ", standby: " + list(standby)
	}
	return text + ")"
}

func (r Result) summary() []string {
	var lines []string
	for _, s := range r.Skipped {
		lines = append(lines, "Skipped "+s)
	}
	lines = append(lines, "Left: "+list(r.Left))
	if r.Stable {
		lines = append(lines, "Stable: yes")
	} else {
		lines = append(lines, "Stable: no, another round would change something")
	}
	for _, row := range r.Metrics.rows() {
		lines = append(lines, row[0]+": "+row[1])
	}
	return lines
}

// rows are the metrics as names and values, without those that were not measured.
func (m Metrics) rows() [][2]string {
	rows := [][2]string{{"Rebalances", fmt.Sprint(m.Rebalances)}, {"Tasks moved", fmt.Sprint(m.TasksMoved)}}
	add := func(name, format string, v *float64) {
		if v != nil {
			rows = append(rows, [2]string{name, fmt.Sprintf(format, *v)})
		}
	}
	if m.Rounds != nil {
		rows = append(rows, [2]string{"Rounds, those that changed nothing too", fmt.Sprint(*m.Rounds)})
	}
	if m.BytesRestored != nil {
		rows = append(rows, [2]string{"Restored", gibibytes(*m.BytesRestored)})
	}
	if m.SecondsToBalance == nil && m.GapTaskSeconds != nil {
		rows = append(rows, [2]string{"Time to balance", "not reached: something is still to be restored"})
	}
	add("Time to balance", "%.2f s", m.SecondsToBalance)
	add("Double processing, summed over tasks", "%.2f s", m.DoubleProcessingTaskSeconds)
	add("Gap, summed over tasks", "%.2f s", m.GapTaskSeconds)
	add("Longest gap of a task", "%.2f s", m.LongestGapSeconds)
	add("Overload, summed over instances", "%.2f s", m.OverloadInstanceSeconds)
	add("Highest load of an instance", "%.2f", m.PeakLoad)
	if m.MaxGroupBytes != nil {
		rows = append(rows, [2]string{"Largest group record", fmt.Sprintf("%d bytes", *m.MaxGroupBytes)})
	}
	return rows
}

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

func gibibytes(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }
