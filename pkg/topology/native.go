package topology

import (
	"cmp"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// native is an expression, or a part of one, as Go closures. They cover what is common over keys and values of known type
// (comparisons, text functions, whole numbers), and over fields of JSON, and do just what the expression library does, without
// putting every value into an interface. One of the first five is set; none for what they do not cover.
type native struct {
	truth    func(*message) bool
	text     func(*message) string
	whole    func(*message) int64
	parts    *nativeSplit
	computed computed
	object   []namedField // beside computed, of {"a": ..., "b": ...}
}

// nativeSplit is split(text, sep) with a constant, non-empty sep.
type nativeSplit struct {
	text func(*message) string
	sep  string
}

// each calls do for the parts in order, until its first error.
func (s *nativeSplit) each(m *message, do func(datum, error) error) error {
	rest := s.text(m)
	for {
		part, after, more := strings.Cut(rest, s.sep)
		if err := do(textDatum(part), nil); err != nil {
			return err
		}
		if !more {
			return nil
		}
		rest = after
	}
}

// covers reports whether the closures may run on m: nulls are left to the library.
func (e *expression) covers(m *message) bool {
	return (!m.value.null || e.uses&usesValue == 0) && (!m.key.null || e.uses&usesKey == 0)
}

// compileNative returns the zero native for what it does not know.
func (s scope) compileNative(n ast.Node) native {
	switch n := n.(type) {
	case *ast.StringNode:
		return native{text: func(*message) string { return n.Value }}
	case *ast.IntegerNode:
		return native{whole: func(*message) int64 { return int64(n.Value) }}
	case *ast.BoolNode:
		return native{truth: func(*message) bool { return n.Value }}
	case *ast.IdentifierNode:
		return s.nativeName(n.Value)
	case *ast.UnaryNode:
		if of := s.compileNative(n.Node); of.truth != nil && (n.Operator == "!" || n.Operator == "not") {
			return native{truth: func(m *message) bool { return !of.truth(m) }}
		}
	case *ast.BinaryNode:
		l, r := s.compileNative(n.Left), s.compileNative(n.Right)
		switch {
		case l.truth != nil && r.truth != nil:
			return nativeLogic(n.Operator, l.truth, r.truth)
		case l.text != nil && r.text != nil:
			return nativeTexts(n.Operator, l.text, r.text)
		case l.whole != nil && r.whole != nil:
			return nativeWholes(n.Operator, l.whole, r.whole)
		}
	case *ast.BuiltinNode:
		return s.nativeCall(n)
	}
	return native{}
}

func (s scope) nativeName(name string) native {
	switch {
	case name == "value" && s.value == String:
		return native{text: func(m *message) string { return m.value.text() }}
	case name == "value" && s.value == Int:
		return native{whole: func(m *message) int64 { return m.value.int() }}
	case name == "key" && s.key == String:
		return native{text: func(m *message) string { return m.key.text() }}
	case name == "key" && s.key == Int:
		return native{whole: func(m *message) int64 { return m.key.int() }}
	case name == "window_start" && s.window:
		return native{whole: func(m *message) int64 { return m.window.Start }}
	case name == "window_end" && s.window:
		return native{whole: func(m *message) int64 { return m.window.End }}
	case name == "timestamp":
		return native{whole: func(m *message) int64 { return m.ts }}
	default:
		return native{}
	}
}

func nativeLogic(operator string, l, r func(*message) bool) native {
	switch operator {
	case "and", "&&":
		return native{truth: func(m *message) bool { return l(m) && r(m) }}
	case "or", "||":
		return native{truth: func(m *message) bool { return l(m) || r(m) }}
	default:
		return native{}
	}
}

func nativeTexts(operator string, l, r func(*message) string) native {
	switch operator {
	case "+":
		return native{text: func(m *message) string { return l(m) + r(m) }}
	case "contains":
		return native{truth: func(m *message) bool { return strings.Contains(l(m), r(m)) }}
	case "startsWith":
		return native{truth: func(m *message) bool { return strings.HasPrefix(l(m), r(m)) }}
	case "endsWith":
		return native{truth: func(m *message) bool { return strings.HasSuffix(l(m), r(m)) }}
	default:
		return native{truth: nativeCompare(operator, l, r)}
	}
}

func nativeWholes(operator string, l, r func(*message) int64) native {
	switch operator {
	case "+":
		return native{whole: func(m *message) int64 { return l(m) + r(m) }}
	case "-":
		return native{whole: func(m *message) int64 { return l(m) - r(m) }}
	case "*":
		return native{whole: func(m *message) int64 { return l(m) * r(m) }}
	default:
		return native{truth: nativeCompare(operator, l, r)}
	}
}

func nativeCompare[T cmp.Ordered](operator string, l, r func(*message) T) func(*message) bool {
	switch operator {
	case "==":
		return func(m *message) bool { return l(m) == r(m) }
	case "!=":
		return func(m *message) bool { return l(m) != r(m) }
	case "<":
		return func(m *message) bool { return l(m) < r(m) }
	case "<=":
		return func(m *message) bool { return l(m) <= r(m) }
	case ">":
		return func(m *message) bool { return l(m) > r(m) }
	case ">=":
		return func(m *message) bool { return l(m) >= r(m) }
	default:
		return nil
	}
}

func (s scope) nativeCall(n *ast.BuiltinNode) native {
	if len(n.Arguments) == 0 {
		return native{}
	}
	text := s.compileNative(n.Arguments[0]).text
	switch {
	case text == nil:
	case len(n.Arguments) == 2:
		if sep, ok := n.Arguments[1].(*ast.StringNode); ok && n.Name == "split" && sep.Value != "" {
			return native{parts: &nativeSplit{text: text, sep: sep.Value}}
		}
	case len(n.Arguments) > 2:
	case n.Name == "lower":
		return native{text: func(m *message) string { return strings.ToLower(text(m)) }}
	case n.Name == "upper":
		return native{text: func(m *message) string { return strings.ToUpper(text(m)) }}
	case n.Name == "trim":
		return native{text: func(m *message) string { return strings.TrimSpace(text(m)) }}
	}
	return native{}
}
