package topology

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// TestErrors shows what a user sees for each kind of mistake. "parse" prints all the mistakes of a file; with the
// argument registry there is one to have schemas from.
func TestErrors(t *testing.T) {
	datadriven.Walk(t, "testdata/errors", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, data *datadriven.TestData) string {
			if data.Cmd != "parse" {
				t.Fatalf("unknown command %q", data.Cmd)
			}
			f := yamlnode.Parse("app.yaml", []byte(data.Input), nil)
			m := f.Root().Map()
			d := Definition{App: "app", Tables: m.Get("tables"), Streams: m.Get("streams")}
			if data.HasArg("registry") {
				d.Registry = newShelf()
			}
			top := d.Parse()
			m.Done()
			err := f.Err()
			if (err == nil) != (top != nil) {
				t.Errorf("error %v, but topology %v", err, top)
			}
			if err == nil {
				return "ok\n"
			}
			return err.Error() + "\n"
		})
	})
}
