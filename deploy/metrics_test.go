package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
	"github.com/streamworker/streamworker/pkg/telemetry"
)

// everything is an instance that has something to show under each metric.
type everything struct{}

func (everything) Status() control.Status {
	return control.Status{Active: []string{"0_0"}, Lag: map[string]int64{"0_0": 1}, Learning: []control.Learning{{Task: "0_1", Lag: 1}}}
}
func (everything) Totals() tasks.Totals { return tasks.Totals{} }

// exported are the names of all series that an instance gives, each with the values of its labels.
func exported(t *testing.T) map[string]map[string]map[string]bool {
	t.Helper()
	m := telemetry.New("v1")
	m.Watch(everything{})
	for _, o := range []handover.Outcome{handover.Acknowledged, handover.Declined, handover.Unknown} {
		m.Events().Committed(tasks.CommitInfo{Outcome: o})
	}
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]map[string]map[string]bool{}
	for _, f := range families {
		labels := map[string]map[string]bool{}
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				if labels[l.GetName()] == nil {
					labels[l.GetName()] = map[string]bool{}
				}
				labels[l.GetName()][l.GetValue()] = true
			}
		}
		if f.GetType().String() != "HISTOGRAM" {
			names[f.GetName()] = labels
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			names[f.GetName()+suffix] = labels
		}
	}
	return names
}

var (
	series  = regexp.MustCompile(`\b((?:streamworker|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`(\w+)\s*=(~?)\s*"([^"]*)"`)
)

// Rules and dashboard ask for metrics that an instance has, and for values of their labels that these can have.
func TestMetricsExist(t *testing.T) {
	names := exported(t)
	for _, file := range []string{"prometheus/streamworker.rules.yml", "grafana/streamworker.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, m := range series.FindAllStringSubmatch(strings.ReplaceAll(string(data), `\"`, `"`), -1) {
			name, selector := m[1], m[2]
			found[name] = true
			labels, ok := names[name]
			if !ok {
				t.Errorf("%s: no instance has %s", file, name)
				continue
			}
			for _, l := range matcher.FindAllStringSubmatch(selector, -1) {
				if l[1] == "job" || l[1] == "instance" { // of the target
					continue
				}
				values := []string{l[3]}
				if l[2] == "~" {
					values = strings.Split(l[3], "|")
				}
				for _, v := range values {
					if !labels[l[1]][v] {
						t.Errorf(`%s: no instance has %s{%s="%s"}`, file, name, l[1], v)
					}
				}
			}
		}
		if len(found) < 8 {
			t.Errorf("%s: only %d metrics were found", file, len(found))
		}
	}
}
