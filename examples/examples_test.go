package examples

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/cases"
)

func TestCases(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"*.yaml", "jobs/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 6 {
		t.Fatalf("only %q were found", paths)
	}
	for _, path := range paths {
		if topology, _ := cases.Paths(path); topology != path {
			continue
		}
		t.Run(path, func(t *testing.T) {
			f, err := cases.Load(path, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			outcomes, err := f.Run(func(string) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			var report cases.Report
			report.Add(f, outcomes)
			if report.Failed > 0 {
				var b strings.Builder
				if err := report.WriteText(&b); err != nil {
					t.Fatal(err)
				}
				t.Error("\n" + b.String())
			}
		})
	}
}
