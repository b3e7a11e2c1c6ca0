package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

const clearScreen = "\x1b[H\x1b[2J"

// writeView prints a group for people.
func writeView(w io.Writer, v control.View, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %s, %s, generation %d\n\n", v.App, count(len(v.Instances), "instance"), count(len(v.Tasks), "task"), v.Generation)
	if len(v.Instances) > 0 {
		fmt.Fprintln(t, "INSTANCE\tSTATE\tACTIVE\tLEARNING\tSTANDBY\tLABELS")
	}
	for _, i := range v.Instances {
		var learning []string
		for _, l := range i.Learning {
			learning = append(learning, l.Task)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.State, list(i.Active), list(learning), list(i.Standby), labels(i.Labels))
	}
	writeMoves(t, v)
	writeLags(t, v)
	writeFailures(t, v)
	writeBadGlobals(t, v)
	for _, i := range v.Instances {
		if i.State == control.Draining {
			fmt.Fprintf(t, "\n%s is draining: %s left%s\n", i.ID, count(len(i.Active), "task"), timeLeft(i.Deadline, now))
		}
	}
	if v.AllLeaving() {
		fmt.Fprintf(t, "\n%s\n", allLeaving)
	}
	for _, g := range v.Gone {
		why := "fell silent"
		if g.Left != "" {
			why = leftBy(g.Left)
		}
		fmt.Fprintf(t, "\n%s is gone: %s, last seen %s ago\n", g.Instance, why, now.Sub(g.Seen).Round(time.Second))
	}
	return t.Flush()
}

const allLeaving = "Every instance is leaving, so nobody can take the tasks: start another instance, or cancel one leave by streamworker leave --cancel."

// writeMoves prints learners at work.
func writeMoves(w io.Writer, v control.View) {
	from := make(map[string]string)
	for _, t := range v.Tasks {
		if t.Active != nil {
			from[t.ID] = *t.Active
		}
	}
	head := "\nLEARNER\tTASK\tFROM\tBEHIND"
	for _, i := range v.Instances {
		for _, l := range i.Learning {
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.ID, l.Task, orDash(from[l.Task]), behind(l))
		}
	}
}

// writeLags prints the active tasks that are behind their input, and tasks that nobody runs.
func writeLags(w io.Writer, v control.View) {
	head := "\nTASK\tACTIVE\tINPUT LAG"
	for _, t := range v.Tasks {
		active := ""
		if t.Active != nil {
			active = *t.Active
		}
		if active != "" && t.Lag == 0 {
			continue
		}
		if head != "" {
			fmt.Fprintln(w, head)
			head = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%d\n", t.ID, orDash(active), t.Lag)
	}
}

// writeFailures prints the tasks that cannot go on, and why.
func writeFailures(w io.Writer, v control.View) {
	if v.FailedTasks == 0 {
		return
	}
	fmt.Fprintln(w, "\nCANNOT GO ON\tINSTANCE\tFAILURES\tERROR")
	for _, f := range v.Failed {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", f.Task, f.Instance, f.Failures, f.Error)
	}
	if more := v.FailedTasks - len(v.Failed); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

// writeBadGlobals prints the global tables with records that could not be read.
func writeBadGlobals(w io.Writer, v control.View) {
	if len(v.BadGlobals) == 0 {
		return
	}
	fmt.Fprintln(w, "\nGLOBAL TABLE\tINSTANCE\tBAD RECORDS\tERROR")
	for _, g := range v.BadGlobals {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", g.Table, g.Instance, g.Records, g.Error)
	}
}

func behind(l control.Learning) string {
	switch {
	case l.Ready:
		return "ready"
	case l.Lag < 0:
		return "starting"
	}
	return fmt.Sprintf("%s changes", thousands(l.Lag))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listed is how many tasks are named before only their number is given.
const listed = 12

func list(ids []string) string {
	switch {
	case len(ids) == 0:
		return "-"
	case len(ids) > listed:
		return fmt.Sprintf("%d tasks", len(ids))
	}
	return strings.Join(ids, ",")
}

func labels(l map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(l)) {
		pairs = append(pairs, k+"="+l[k])
	}
	return orDash(strings.Join(pairs, ","))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func timeLeft(deadline, now time.Time) string {
	switch {
	case deadline.IsZero():
		return ", no timeout"
	case now.After(deadline):
		return ", time is up"
	}
	return ", time left " + deadline.Sub(now).Round(time.Second).String()
}

func leftBy(left string) string {
	switch left {
	case control.LeftDrained:
		return "handed everything over"
	case control.LeftTimeout:
		return "left at its scale-down timeout"
	case control.LeftNow:
		return "gave everything up"
	}
	return "left"
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
