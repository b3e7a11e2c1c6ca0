package docs

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/scenario"
)

var rewrite = flag.Bool("rewrite", false, "write the figures of scaling.md anew")

// simulation is a command of scaling.md with what it prints below it.
var simulation = regexp.MustCompile(`(?m)^    (streamworker simulate .* -o summary)\n\n((?:    .*\n)+)`)

// The figures in scaling.md are those that its commands print.
func TestScalingFigures(t *testing.T) {
	const name = "scaling.md"
	text := read(t, name)
	found := simulation.FindAllStringSubmatch(text, -1)
	if len(found) < 3 {
		t.Fatalf("%s has %d commands with what they print", name, len(found))
	}
	now := text
	for _, m := range found {
		now = strings.Replace(now, m[0], "    "+m[1]+"\n\n"+summary(t, m[1]), 1)
	}
	now = withOptimum(t, now)
	switch {
	case now == text:
	case *rewrite:
		if err := os.WriteFile(name, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has other figures than its commands print; go test ./docs -run TestScalingFigures -rewrite writes them. Now:\n%s", name, now)
	}
}

// summary runs such a command without the binary; the story runs the binary.
func summary(t *testing.T, line string) string {
	t.Helper()
	var all []scenario.Comparison
	words := strings.Fields(line)
	var variants []scenario.Variant
	for i, word := range words {
		if word != "--compare" {
			continue
		}
		for policy := range strings.SplitSeq(words[i+1], ",") {
			v, err := scenario.ParseVariant(policy)
			if err != nil {
				t.Fatal(err)
			}
			variants = append(variants, v)
		}
	}
	for _, word := range words {
		if !strings.HasSuffix(word, ".yaml") {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(root, word))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no such file (%v)", word, err)
		}
		for _, path := range paths {
			s, err := scenario.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := scenario.Compare(s, variants...)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
	}
	var b bytes.Buffer
	if err := scenario.WriteSummary(&b, all...); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^(.*?) *$`).ReplaceAllString(strings.TrimRight(b.String(), "\n"), "    $1") + "\n"
}

// withOptimum puts the table of the exhaustive search in the place of the one in the text.
func withOptimum(t *testing.T, text string) string {
	t.Helper()
	_, table, found := strings.Cut(read(t, "../pkg/scenario/testdata/optimum"), "----\n")
	before, rest, start := strings.Cut(text, "| case |")
	_, after, end := strings.Cut(rest, "\n\n")
	if !found || !start || !end {
		t.Fatal("there is no table of the least that is possible")
	}
	return before + strings.TrimRight(table, "\n") + "\n\n" + after
}
