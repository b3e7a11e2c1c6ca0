package yamlnode

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Text returns the value as the text that stands in the file, whatever YAML takes it for; false if it
// is absent or no scalar. References such as ${NAME} stay as they are.
func (n Node) Text() (string, bool) {
	text, ok := n.scalar()
	n.recordKind(Text)
	return text, ok
}

func (n Node) scalar() (string, bool) {
	switch v := n.value().(type) {
	case nil, *ast.NullNode:
		return "", false
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, true
	default:
		return "", false
	}
}

// reference is ${NAME} or ${NAME:-default}.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// expanded is Text with references to the environment resolved. It reports a value that is no scalar and
// a name that is not set.
func (n Node) expanded() (string, bool) {
	if n.variable != "" {
		return n.text, true
	}
	text, ok := n.scalar()
	if !ok {
		if n.Exists() {
			n.Errorf("", "want a single value, got %s", n.kind())
		}
		return "", false
	}
	if n.f.lookup == nil || !strings.Contains(text, "${") {
		return text, true
	}
	text = reference.ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference.FindStringSubmatch(ref)
		if v, set := n.f.lookup(parts[1]); set {
			return v
		}
		if parts[2] == "" {
			n.Errorf("set it, or write ${"+parts[1]+":-default}", "environment variable %s is not set", parts[1])
			ok = false
		}
		return strings.TrimPrefix(parts[2], ":-")
	})
	return text, ok
}

// String returns the value as text, or def if absent.
func (n Node) String(def string) string {
	s, ok := n.expanded()
	if !ok {
		s = def
	}
	n.record(Text, def, nil, nil, s)
	return s
}

// hidden stands for a secret.
const hidden = "(hidden)"

// Secret is String for a text that must not be shown.
func (n Node) Secret() string {
	s, _ := n.expanded()
	var shown any
	if s != "" {
		shown = hidden
	}
	n.record(Secret, nil, nil, nil, shown)
	return s
}

// Strings returns a list of texts.
func (n Node) Strings() []string {
	var out []string
	for _, item := range n.List() {
		if s, ok := item.expanded(); ok {
			out = append(out, s)
		}
	}
	return out
}

// StringMap returns a mapping of names to texts; nil if absent.
func (n Node) StringMap() map[string]string {
	var out map[string]string
	if n = n.written(); n.Exists() {
		m := n.Map()
		out = make(map[string]string, len(m.fields))
		for _, f := range m.fields {
			out[f.name] = m.Get(f.name).String("")
		}
	}
	n.record(Texts, nil, nil, nil, out)
	return out
}

// Enum returns the value if it is one of values, else def.
func (n Node) Enum(def string, values ...string) string {
	v := n.choice(def, values)
	n.record(Choice, def, nil, nil, v, values...)
	return v
}

func (n Node) choice(def string, values []string) string {
	s, ok := n.expanded()
	if !ok {
		return def
	}
	for _, v := range values {
		if s == v {
			return s
		}
	}
	hint := "one of: " + strings.Join(values, ", ")
	if near := Nearest(s, values); near != "" {
		hint = "did you mean " + near + "? (" + hint + ")"
	}
	n.Errorf(hint, "%q is not known here", s)
	return def
}

// Bool returns the value, or def if absent.
func (n Node) Bool(def bool) bool {
	v := n.truth(def)
	n.record(Bool, def, nil, nil, v)
	return v
}

func (n Node) truth(def bool) bool {
	s, ok := n.expanded()
	switch {
	case !ok:
		return def
	case s == "true":
		return true
	case s == "false":
		return false
	}
	n.Errorf("write true or false", "%q is neither true nor false", s)
	return def
}

// Int returns the value if it is a whole number from least to most, else def.
func (n Node) Int(def, least, most int64) int64 {
	v := n.whole(def, least, most)
	n.record(Integer, def, least, most, valueUnless(v < least, v))
	return v
}

func (n Node) whole(def, least, most int64) int64 {
	s, ok := n.expanded()
	if !ok {
		return def
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	switch {
	case err != nil:
		n.Errorf("", "%q is not a whole number", s)
	case v < least:
		n.Errorf("", "%d is too small: at least %d", v, least)
	case v > most:
		n.Errorf("", "%d is too large: at most %d", v, most)
	default:
		return v
	}
	return def
}

// Duration returns the value if it is a duration with a unit from least to most, else def.
func (n Node) Duration(def, least, most time.Duration) time.Duration {
	v := n.duration(def, least, most)
	n.record(Duration, FormatDuration(def), FormatDuration(least), FormatDuration(most), valueUnless(v < least, FormatDuration(v)))
	return v
}

func (n Node) duration(def, least, most time.Duration) time.Duration {
	s, ok := n.expanded()
	if !ok {
		return def
	}
	v, err := time.ParseDuration(strings.TrimSpace(s))
	switch {
	case err != nil:
		n.Errorf("write a number with a unit, e.g. 100ms, 15s, 10m, 2h", "%q is not a duration", s)
	case v < least:
		n.Errorf("", "%s is too short: at least %s", s, least)
	case v > most:
		n.Errorf("", "%s is too long: at most %s", s, most)
	default:
		return v
	}
	return def
}

// sizes by unit, in bytes; decimal units are powers of 1000.
var sizes = map[string]float64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}

// Size returns the value in bytes if it is a size with a unit from least to most, else def.
func (n Node) Size(def, least, most int64) int64 {
	v := n.size("", def, least, most)
	n.record(Size, FormatSize(def), FormatSize(least), FormatSize(most), valueUnless(v < least, FormatSize(v)))
	return v
}

// Rate is Size for bytes per second, which may end in "/s".
func (n Node) Rate(def, least, most int64) int64 {
	v := n.size("/s", def, least, most)
	n.record(Rate, FormatSize(def), FormatSize(least), FormatSize(most), valueUnless(v < least, FormatSize(v)))
	return v
}

func (n Node) size(suffix string, def, least, most int64) int64 {
	s, ok := n.expanded()
	if !ok {
		return def
	}
	t := strings.TrimSuffix(strings.TrimSpace(s), suffix)
	digits := strings.TrimRight(t, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, known := sizes[strings.ToUpper(strings.TrimSpace(t[len(digits):]))]
	v, err := strconv.ParseFloat(digits, 64)
	switch {
	case t == "0":
	case err != nil || !known || math.IsNaN(v) || v < 0:
		n.Errorf("write a number with a unit, e.g. 512KiB, 256MiB, 2GiB", "%q is not a size", s)
		return def
	}
	switch bytes := v * unit; {
	case bytes < float64(least):
		n.Errorf("", "%s is too small: at least %s", s, FormatSize(least))
	case bytes > float64(most):
		n.Errorf("", "%s is too large: at most %s", s, FormatSize(most))
	default:
		return int64(bytes)
	}
	return def
}

// valueUnless is nil for the default of a number that stands for none: no file could say it.
func valueUnless(unset bool, v any) any {
	if unset {
		return nil
	}
	return v
}

// FormatDuration writes a duration without the zeros that its String has: 1h, not 1h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FormatSize writes bytes in the largest binary unit that leaves no fraction.
func FormatSize(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for bytes != 0 && bytes%1024 == 0 && i < len(units)-1 {
		bytes /= 1024
		i++
	}
	return strconv.FormatInt(bytes, 10) + units[i]
}
