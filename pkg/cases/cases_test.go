package cases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestCases runs files: "topology" writes one, "cases" prints the mistakes of cases of it, or their report; json: as JSON.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		dir := t.TempDir()
		write := func(name, src string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "topology" {
				write("a.yaml", "app: app\n"+d.Input)
				return ""
			}
			write("a_test.yaml", d.Input)
			local := func(s string) string { return strings.ReplaceAll(s, dir+string(filepath.Separator), "") }
			f, err := Load(filepath.Join(dir, "a.yaml"), nil, nil)
			if err != nil {
				return local(err.Error()) + "\n"
			}
			outcomes, err := f.Run(func(string) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			var report Report
			report.Add(f, outcomes)
			var b strings.Builder
			write := report.WriteText
			if d.HasArg("json") {
				write = report.WriteJSON
			}
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			return local(b.String())
		})
	})
}

func TestPaths(t *testing.T) {
	for _, given := range []string{"d/words.yaml", "d/words_test.yaml"} {
		if topology, tests := Paths(given); topology != "d/words.yaml" || tests != "d/words_test.yaml" {
			t.Errorf("%s: %s and %s", given, topology, tests)
		}
	}
	if topology, tests := Paths("words.yml"); topology != "words.yml" || tests != "words_test.yaml" {
		t.Errorf("words.yml: %s and %s", topology, tests)
	}
}

func TestNoCases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte("app: a\nstreams: [{name: s, from: in, steps: [count]}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, nil, nil); err == nil || !strings.Contains(err.Error(), "write them into") {
		t.Errorf("got %v", err)
	}
}
