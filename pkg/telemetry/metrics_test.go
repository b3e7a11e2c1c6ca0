package telemetry

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/metrics and the table in docs/metrics.md anew")

type source struct{}

func (source) Status() control.Status {
	return control.Status{
		State: control.Draining, Generation: 7, Active: []string{"0_0", "0_1"}, Lag: map[string]int64{"0_0": 12},
		Learning: []control.Learning{{Task: "0_2", Lag: 5}, {Task: "0_3", Lag: -1}}, Standby: []string{"0_4"}, FailedTasks: 2,
		Capacity: 2, DeadlineMs: 1_700_000_000_500, Load: control.Load{Arriving: 1000.5, Threads: 8, Busy: 0.5, StateBytes: 1 << 30, FreeBytes: 3 << 30},
	}
}

func (source) Totals() tasks.Totals {
	return tasks.Totals{
		RecordsIn: 1, RecordsOut: 2, Changes: 3, Restored: 4, Skipped: 5, DeadLettered: 6, Dropped: 11, Takeovers: 7, Releases: 8, Failures: 9, Aborts: 12,
		Busy: 1500 * time.Millisecond,
	}
}

// gathered are the product's own metrics, each with all of its labels.
func gathered(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	m := New("v1")
	m.Watch(source{})
	e := m.Events()
	e.TakenOver(tasks.TakeoverInfo{Gap: 25 * time.Millisecond, Slowest: 40 * time.Millisecond})
	e.Released(tasks.ReleaseInfo{Took: 6 * time.Millisecond})
	e.Restored(tasks.RestoreInfo{Took: time.Second})
	for outcome := range map[handover.Outcome]bool{handover.Acknowledged: true, handover.Declined: true, handover.Unknown: true} {
		e.Committed(tasks.CommitInfo{Outcome: outcome, Took: time.Millisecond})
	}
	all, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), namespace) })
}

// golden compares with the file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant (accept by go test ./pkg/telemetry -rewrite):\n%s", got, want)
	}
}

// Dashboards and alerts rest on the names, types, labels and meanings in testdata/metrics.
func TestMetrics(t *testing.T) {
	var all bytes.Buffer
	for _, f := range gathered(t) {
		if _, err := expfmt.MetricFamilyToText(&all, f); err != nil {
			t.Fatal(err)
		}
	}
	var got strings.Builder
	for line := range strings.Lines(all.String()) {
		if !strings.Contains(line, "_bucket{") {
			got.WriteString(line)
		}
	}
	golden(t, "testdata/metrics", got.String())
}

// The table in the documentation is made of the metrics themselves.
func TestMetricsAreDocumented(t *testing.T) {
	const file, begin, end = "../../docs/metrics.md", "<!-- metrics: begin -->\n", "<!-- metrics: end -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range gathered(t) {
		values := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			switch name {
			case "task", "version":
				labels = append(labels, "`"+name+"`")
			default:
				labels = append(labels, "`"+name+"`: "+strings.Join(values[name], ", "))
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, "; "), f.GetHelp())
	}
	golden(t, file, before+begin+table.String()+end+after)
}
