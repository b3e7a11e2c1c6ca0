package telemetry

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/metrics anew")

type source struct{}

func (source) Status() control.Status {
	return control.Status{
		State: control.Draining, Generation: 7, Active: []string{"0_0", "0_1"}, Lag: map[string]int64{"0_0": 12},
		Learning: []control.Learning{{Task: "0_2", Lag: 5}, {Task: "0_3", Lag: -1}}, Standby: []string{"0_4"}, FailedTasks: 2,
	}
}

func (source) Totals() tasks.Totals {
	return tasks.Totals{
		RecordsIn: 1, RecordsOut: 2, Changes: 3, Restored: 4, Skipped: 5, DeadLettered: 6, Dropped: 11, Takeovers: 7, Releases: 8, Failures: 9, Aborts: 12,
	}
}

// Dashboards and alerts rest on the names, labels and meanings in testdata/metrics.
func TestMetrics(t *testing.T) {
	m := New("v1")
	m.Watch(source{})
	e := m.Events()
	e.TakenOver(tasks.TakeoverInfo{Gap: 25 * time.Millisecond, Slowest: 40 * time.Millisecond})
	e.Released(tasks.ReleaseInfo{Took: 6 * time.Millisecond})
	e.Restored(tasks.RestoreInfo{Took: time.Second})
	for outcome := range map[handover.Outcome]bool{handover.Acknowledged: true, handover.Declined: true, handover.Unknown: true} {
		e.Committed(tasks.CommitInfo{Outcome: outcome, Took: time.Millisecond})
	}
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), namespace) {
			if _, err := expfmt.MetricFamilyToText(&all, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got strings.Builder
	for line := range strings.Lines(all.String()) {
		if !strings.Contains(line, "_bucket{") {
			got.WriteString(line)
		}
	}
	const file = "testdata/metrics"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got:\n%s\nwant (accept by go test -rewrite):\n%s", got.String(), want)
	}
}
