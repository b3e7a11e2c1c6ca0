//go:build integration

package differential

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/streamworker/streamworker/integration/harness"
	"github.com/streamworker/streamworker/pkg/topology"
)

// deviation is something in which streamworker differs from Kafka Streams on purpose: a file in testdata/deviations. It has records
// that show it, and what each side writes.
type deviation struct {
	name string
	top  *topology.Topology

	Deviation    string              `yaml:"deviation"` // as docs/semantics.md has it
	Streams      any                 `yaml:"streams"`   // ours, as are
	Tables       any                 `yaml:"tables"`    // these
	KafkaStreams []any               `yaml:"kafka_streams"`
	Inputs       []record            `yaml:"inputs"`
	Theirs       map[string][]string `yaml:"theirs"` // by topic, as output.String
	Ours         map[string][]string `yaml:"ours"`
}

func loadDeviations(t *testing.T) []*deviation {
	t.Helper()
	paths, err := filepath.Glob("testdata/deviations/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no deviations", err)
	}
	semantics, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "semantics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*deviation
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := &deviation{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), top: parse(t, path, src)}
		if err := yaml.UnmarshalWithOptions(src, d, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if d.Deviation == "" || !strings.Contains(string(semantics), "**"+d.Deviation+"**") {
			t.Errorf("%s: docs/semantics.md does not list **%s**", path, d.Deviation)
		}
		all = append(all, d)
	}
	return all
}

// check wants both sides to write what the file says.
func (d *deviation) check(t *testing.T, p *peer) {
	for side, got := range map[string]struct {
		*result
		want map[string][]string
	}{"Kafka Streams": {p.run(t, d.KafkaStreams, d.Inputs), d.Theirs}, "streamworker": {run(t, d.top, d.Inputs), d.Ours}} {
		for topic, outputs := range got.Outputs {
			var lines []string
			for _, o := range outputs {
				lines = append(lines, o.String())
			}
			if !slices.Equal(lines, got.want[topic]) {
				t.Errorf("%s writes to topic %s\n%s\nwant\n%s", side, topic, strings.Join(lines, "\n"), strings.Join(got.want[topic], "\n"))
			}
		}
		if len(got.Outputs) != len(got.want) {
			t.Errorf("%s writes to %d topics, want %d", side, len(got.Outputs), len(got.want))
		}
	}
	if fmt.Sprint(d.Theirs) == fmt.Sprint(d.Ours) {
		t.Error("there is no difference")
	}
}
