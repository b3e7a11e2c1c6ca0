package topologytest_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
)

// TestScript runs files: "topology" reads streams, "run" prints what a script in JSON gives.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		var top *topology.Topology
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "topology" {
				top = parse(t, d.Input)
				return ""
			}
			script, err := topologytest.ReadScript(strings.NewReader(d.Input))
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			result, err := script.Run(top)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			var b strings.Builder
			if err := result.WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			return strings.NewReplacer(`"tables"`, "\n"+`"tables"`, `:[{"i"`, ":[\n"+` {"i"`, `},{"i"`, "},\n"+` {"i"`).Replace(b.String())
		})
	})
}
