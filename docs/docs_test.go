package docs

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/config"
)

const root = ".."

// documents are all that people read, as paths from here.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../*.md", "*.md", "../examples/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			texts[name] = read(t, name)
		}
	}
	if len(texts) < 10 {
		t.Fatalf("only %d documents were found", len(texts))
	}
	return texts
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linkText  = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// anchors are the places in a document that links may name, as GitHub makes them of headings.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := notAnchor.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(m[1], "$1")), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// Links within the repository lead to files, and to headings, that exist.
func TestLinks(t *testing.T) {
	for name, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: link to %s: no such heading", name, m[1])
			}
		}
	}
}

var (
	makeLine  = regexp.MustCompile("(?m)(?:^    |`|&& )make ([a-z][a-z -]*)")
	testName  = regexp.MustCompile(`\b(?:Test|Benchmark)[A-Z]\w+`)
	metric    = regexp.MustCompile(`\bstreamworker_[a-z_]+`)
	goPath    = regexp.MustCompile("`((?:pkg|cmd|integration|deploy|scripts|examples|docs)/[\\w@./-]+)`")
	address   = regexp.MustCompile(`https?://[^\s)]*`)
	configKey = regexp.MustCompile(`\b(?:kafka|learners|state|admin|telemetry|internal_topics|log)\.[a-z_]+(?:\.[a-z_]+)*\b`)
)

// Make targets, paths, tests, metrics and configuration keys that documents name exist.
func TestNames(t *testing.T) {
	makefile, metrics, tests := read(t, "../Makefile"), read(t, "../pkg/telemetry/testdata/metrics"), testNames(t)
	keys := configKeys(t)
	for name, text := range documents(t) {
		for _, m := range makeLine.FindAllStringSubmatch(text, -1) {
			for _, target := range strings.Fields(m[1]) {
				if !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(makefile) {
					t.Errorf("%s: make has no target %s", name, target)
				}
			}
		}
		for _, m := range goPath.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, n := range testName.FindAllString(text, -1) {
			if !slices.ContainsFunc(tests, func(have string) bool { return strings.HasPrefix(have, n) }) {
				t.Errorf("%s: there is no test %s", name, n)
			}
		}
		for _, n := range metric.FindAllString(text, -1) {
			if !strings.Contains(metrics, n) {
				t.Errorf("%s: there is no metric %s", name, n)
			}
		}
		for _, k := range configKey.FindAllString(address.ReplaceAllString(text, ""), -1) {
			if file := filepath.Ext(k); !keys[k] && file != ".go" && file != ".sh" && file != ".json" && file != ".lock" && file != ".sock" {
				t.Errorf("%s: there is no configuration key %s", name, k)
			}
		}
	}
}

func testNames(t *testing.T) []string {
	var names []string
	eachGoFile(t, func(path string, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasSuffix(path, "_test.go") {
				names = append(names, f.Name.Name)
			}
		}
	})
	return names
}

// configKeys are the paths of all keys in the schema, dots between.
func configKeys(t *testing.T) map[string]bool {
	t.Helper()
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, way := range v {
				walk(path, way)
			}
		case map[string]any:
			below, _ := v["properties"].(map[string]any)
			for k, s := range below {
				full := strings.TrimPrefix(path+"."+k, ".")
				keys[full] = true
				walk(full, s)
			}
			walk(path, v["anyOf"])
		}
	}
	walk("", schema)
	return keys
}

// eachGoFile calls f with each Go file of this module.
func eachGoFile(t *testing.T, f func(path string, file *ast.File)) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == ".git" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		f(path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	tableRow = regexp.MustCompile(`(?m)^\| (.*?)(?: \||$)`)
	quoted   = regexp.MustCompile("`([^`]*)`")
	codeRow  = regexp.MustCompile("(?m)^\\| \\d+ \\| `([^`]*)`")
)

// Messages that tables of these documents begin with are in the code: each piece between two … is part of one of its texts.
func TestMessages(t *testing.T) {
	texts := literals(t)
	text := read(t, "troubleshooting.md") + read(t, "metrics.md")
	var messages []string
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			if strings.Contains(m[1], " ") { // else a name
				messages = append(messages, m[1])
			}
		}
	}
	for _, m := range codeRow.FindAllStringSubmatch(text, -1) {
		messages = append(messages, m[1])
	}
	if len(messages) < 50 {
		t.Fatalf("only %d messages were found", len(messages))
	}
	for _, m := range messages {
		for piece := range strings.SplitSeq(m, "…") {
			piece = strings.Trim(piece, " ")
			if piece != "" && !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, piece) }) {
				t.Errorf("nothing in the code says %q, of: %s", piece, m)
			}
		}
	}
}

// literals are all texts in the code but its tests; a sum of texts is one.
func literals(t *testing.T) []string {
	var texts []string
	eachGoFile(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			s, ok := constant(e)
			if ok {
				texts = append(texts, s)
			}
			return !ok
		})
	})
	return texts
}

// constant is the text that an expression of literals stands for.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		x, left := constant(e.X)
		y, right := constant(e.Y)
		return x + y, left && right && e.Op == token.ADD
	}
	return "", false
}
