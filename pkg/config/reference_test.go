package config

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

var update = flag.Bool("update", false, "write what is generated into docs/configuration.md")

// A table stands between "<!-- generated: kafka.tls -->", or "<!-- generated -->", and "<!-- end -->".
var generated = regexp.MustCompile(`(?s)<!-- generated(?:: ([a-z_.]+))? -->\n.*?<!-- end -->`)

// TestReferenceIsCurrent compares the tables of docs/configuration.md with the code; -update writes them.
func TestReferenceIsCurrent(t *testing.T) {
	const path = "../../docs/configuration.md"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{}
	want := generated.ReplaceAllStringFunc(string(have), func(old string) string {
		of := generated.FindStringSubmatch(old)[1]
		tables[of] = true
		marker := "<!-- generated -->"
		if of != "" {
			marker = "<!-- generated: " + of + " -->"
		}
		return marker + "\n\n" + Reference(of) + "\n<!-- end -->"
	})
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(have) {
		t.Errorf("%s does not say what the code does: run go generate ./pkg/config, then read the difference", path)
	}
	for _, f := range known() {
		if of := parentOf(f.Path); !tables[of] {
			t.Errorf("%s has no table for %q, where %s belongs", path, of, f.Path)
		}
	}
}

func TestEveryKeyIsDescribed(t *testing.T) {
	var paths []string
	variables := map[string]string{}
	for _, f := range known() {
		paths = append(paths, f.Path)
		if descriptions[f.Path].Meaning == "" {
			t.Errorf("%s has no description", f.Path)
		}
		name := yamlnode.Variable(EnvPrefix, f.Path)
		if other := variables[name]; other != "" {
			t.Errorf("%s sets both %s and %s", name, other, f.Path)
		}
		variables[name] = f.Path
	}
	for path := range descriptions {
		if !slices.Contains(paths, path) {
			t.Errorf("%s is described, but nothing reads it", path)
		}
	}
}
