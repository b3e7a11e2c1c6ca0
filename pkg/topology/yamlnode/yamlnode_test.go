package yamlnode

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// field parses "f: TEXT" and returns the field.
func field1(text string) (*File, Node) {
	f := Parse("x.yaml", []byte("f: "+text+"\n"), func(name string) (string, bool) { return "env", name == "SET" })
	return f, f.Root().Map().Get("f")
}

func TestScalars(t *testing.T) {
	read := map[string]func(Node) any{
		"string":   func(n Node) any { return n.String("def") },
		"int":      func(n Node) any { return n.Int(-1, 0, 100) },
		"bool":     func(n Node) any { return n.Bool(true) },
		"duration": func(n Node) any { return n.Duration(-1, time.Second, time.Hour) },
		"size":     func(n Node) any { return n.Size(-1, 0, 1<<40) },
		"rate":     func(n Node) any { return n.Rate(-1, 1, 1<<40) },
		"enum":     func(n Node) any { return n.Enum("def", "eager", "stable") },
		"strings":  func(n Node) any { return n.Strings() },
		"map":      func(n Node) any { return n.StringMap() },
	}
	for _, test := range []struct {
		kind, text string
		want       any
		problem    string // part of it; "": none
	}{
		{"string", "abc", "abc", ""},
		{"string", "", "def", ""},
		{"string", "null", "def", ""},
		{"string", "007", "007", ""},
		{"string", "true", "true", ""},
		{"string", "1e3", "1e3", ""},
		{"string", "'it''s'", "it's", ""},
		{"string", "!!str 5", "5", ""},
		{"string", "&a x", "x", ""},
		{"string", "a${SET}b${UNSET:-c}", "aenvbc", ""},
		{"string", "$SET ${1}", "$SET ${1}", ""},
		{"string", "${UNSET}", "def", "UNSET is not set"},
		{"string", "[a]", "def", "got a list"},
		{"string", "{a: b}", "def", "got a mapping"},
		{"int", "100", int64(100), ""},
		{"int", "1_0", int64(10), ""},
		{"int", "101", int64(-1), "at most 100"},
		{"int", "-1", int64(-1), "at least 0"},
		{"int", "1.0", int64(-1), "not a whole number"},
		{"int", "99999999999999999999", int64(-1), "not a whole number"},
		{"bool", "false", false, ""},
		{"bool", "no", true, "neither true nor false"},
		{"duration", "1m30s", 90 * time.Second, ""},
		{"duration", "90", time.Duration(-1), "not a duration"},
		{"duration", "1ms", time.Duration(-1), "too short"},
		{"duration", "2h", time.Duration(-1), "too long"},
		{"size", "1.5 GiB", int64(3 << 29), ""},
		{"size", "64kb", int64(64000), ""},
		{"size", "0", int64(0), ""},
		{"size", "12", int64(-1), "not a size"},
		{"size", "-1MiB", int64(-1), "not a size"},
		{"size", "NaNMiB", int64(-1), "not a size"},
		{"size", "InfMiB", int64(-1), "not a size"},
		{"size", "1MiB/s", int64(-1), "not a size"},
		{"size", "2TiB", int64(-1), "at most 1TiB"},
		{"size", "9e99TiB", int64(-1), "at most 1TiB"},
		{"rate", "1MiB/s", int64(1 << 20), ""},
		{"rate", "1MiB", int64(1 << 20), ""},
		{"rate", "0", int64(-1), "at least 1B"},
		{"enum", "stable", "stable", ""},
		{"enum", "stabel", "def", "did you mean stable?"},
		{"strings", "[a, 1, host:9092, \"x y\"]", []string{"a", "1", "host:9092", "x y"}, ""},
		{"strings", "a", []string(nil), "want a list"},
		{"map", "{a: 1, b: c}", map[string]string{"a": "1", "b": "c"}, ""},
		{"map", "[a]", map[string]string{}, "want a mapping"},
	} {
		f, n := field1(test.text)
		if got := read[test.kind](n); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %q: got %#v, want %#v", test.kind, test.text, got, test.want)
		}
		err := f.Err()
		if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%s %q: got problem %v, want %q", test.kind, test.text, err, test.problem)
		}
	}
}

// The place of a character of an expression is exact wherever the file shows the expression as it is.
func TestExpressionPlaces(t *testing.T) {
	for _, test := range []struct {
		src                string
		line, column       int // in the expression
		wantLine, wantChar int
	}{
		{"e: abc", 1, 0, 1, 4},
		{"e: abc", 1, 2, 1, 6},
		{"e: 'abc'", 1, 2, 1, 7},
		{"e:   \"abc\"", 1, 0, 1, 7},
		{"e: |\n    abc\n      def", 2, 2, 3, 7},
		{"e: |\n    abc\n      def", 2, 3, 3, 8},
		{"e: >\n  abc\n  def", 1, 5, 1, 4},
		{"e: 15", 1, 1, 1, 5},
		{"x: {e: abc}", 1, 1, 1, 9},
		{"# é\ne: éa", 1, 1, 2, 5},
	} {
		f := Parse("x.yaml", []byte(test.src), nil)
		m := f.Root().Map()
		if x := m.Get("x"); x.Exists() {
			m = x.Map()
		}
		m.Get("e").ExprErrorf(test.line, test.column, "", "wrong")
		var p Problems
		if !errors.As(f.Err(), &p) || len(p) != 1 {
			t.Fatalf("%q: got %v", test.src, f.Err())
		}
		if p[0].Line != test.wantLine || p[0].Column != test.wantChar {
			t.Errorf("%q: got %d:%d, want %d:%d", test.src, p[0].Line, p[0].Column, test.wantLine, test.wantChar)
		}
	}
}

func TestProblemsAreOrderedAndListedOnce(t *testing.T) {
	f := Parse("x.yaml", []byte("a: 1\nb: 2\n"), nil)
	m := f.Root().Map()
	m.Get("b").Errorf("", "second")
	m.Get("a").Errorf("do this", "first")
	m.Get("b").Errorf("", "second")
	f.Errorf("", "no place")
	const want = "x.yaml: no place\nx.yaml:1:4: a: first\n    do this\nx.yaml:2:4: b: second"
	if got := f.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMerge(t *testing.T) {
	f := Parse("x.yaml", []byte("base: &b {x: 1, y: 2}\nm: {<<: *b, x: 3}\nn: {<<: [*b, {x: 4, z: 5}]}\nloop: &l {<<: *l, x: 6}\n"), nil)
	m := f.Root().Map()
	for name, want := range map[string]map[string]string{
		"m": {"x": "3", "y": "2"}, "n": {"x": "1", "y": "2", "z": "5"}, "loop": {"x": "6"},
	} {
		if got := m.Get(name).StringMap(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"value", "key", "timestamp", "on_error", "to", "max", "map"}
	for name, want := range map[string]string{
		"valeu": "value", "Value": "value", "vlaue": "value", "timestmp": "timestamp", "onerror": "on_error", "kye": "key",
		"foo": "", "xyz": "", "": "", "t": "", "mx": "max",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1", "a: &x [*x]", "<<: *y", "{a: [b:c, {d: e}]}", "- |\n a\n b", "a: ${X:-y}", "? a\n: b", "!!map {a: b}", "a: !x &y z", "%YAML 1.2\n---\na: b", "[a:1]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file := Parse("x.yaml", src, func(string) (string, bool) { return "", false })
		var walk func(n Node, depth int)
		walk = func(n Node, depth int) {
			if depth > 4 {
				return
			}
			n.Text()
			n.String("")
			n.ExprErrorf(1, 1, "", "here")
			switch {
			case n.IsMap():
				m := n.Map()
				for _, name := range m.Names() {
					walk(m.Get(name), depth+1)
					m.Key(name).Errorf("", "there")
				}
				m.Done()
			case n.IsList():
				for i, item := range n.List() {
					if i < 3 {
						walk(item, depth+1)
					}
				}
			}
		}
		walk(file.Root(), 0)
		if err := file.Err(); err == nil || err.Error() == "" {
			t.Errorf("no problem in %q", src)
		}
	})
}

func TestValue(t *testing.T) {
	f := Parse("f.yaml", []byte(`
v:
  - {a: 1, b: -0x10, c: 2.5, d: true, e: null, f: "1", g: text, h: [], i: {}, j: 18446744073709551615}
  - &x {k: 1}
  - {<<: *x, l: 2}
  - .inf
  - |
    two
    lines
`), nil)
	got := f.Root().Map().Get("v").Value()
	want := []any{
		map[string]any{"a": 1, "b": -16, "c": 2.5, "d": true, "e": nil, "f": "1", "g": "text", "h": []any{}, "i": map[string]any{}, "j": 18446744073709551615.0},
		map[string]any{"k": 1}, map[string]any{"k": 1, "l": 2}, math.Inf(1), "two\nlines\n",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%#v\nwant\n%#v", got, want)
	}
	if line, column := f.Root().Map().Get("v").List()[1].Place(); line != 4 || column != 5 {
		t.Errorf("place %d:%d", line, column)
	}
}
