package topology

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// computed is an expression over fields of JSON, whose types are known record by record. It gives false for what it leaves to the
// library, errors above all.
type computed func(*message) (scalar, bool)

// namedField is one of an object that an expression gives.
type namedField struct {
	name  string
	value computed
}

// native compiles an expression; the zero native leaves it to the library.
func (s scope) native(n ast.Node) native {
	out := s.compileNative(n)
	if s.value != JSON || out.truth != nil || out.text != nil || out.whole != nil || out.parts != nil {
		return out
	}
	out.computed = s.compute(n)
	if object, ok := n.(*ast.MapNode); ok {
		out.object = s.computeFields(object)
	}
	return out
}

// compute evaluates e if that is possible without the library.
func (e *expression) compute(m *message) (scalar, bool) {
	if e.native.computed == nil || !e.covers(m) {
		return scalar{}, false
	}
	return e.native.computed(m)
}

// fill makes f what e gives; false: e gives no object, or it is left to the library.
func (f *fields) fill(e *expression, m *message) bool {
	if e.native.object == nil || !e.covers(m) {
		return false
	}
	f.list = f.list[:0]
	for i := range e.native.object {
		o := &e.native.object[i]
		v, ok := o.value(m)
		if !ok {
			return false
		}
		f.list = append(f.list, field{name: o.name, val: v})
	}
	return true
}

// compute returns nil for what it does not know.
func (s scope) compute(n ast.Node) computed {
	switch n := n.(type) {
	case *ast.NilNode:
		return always(scalar{})
	case *ast.IntegerNode:
		return constant(n, float64(n.Value), int64(n.Value))
	case *ast.FloatNode:
		return constant(n, n.Value, 0)
	case *ast.MemberNode:
		return s.computeMember(n)
	case *ast.UnaryNode:
		return s.computeUnary(n)
	case *ast.BinaryNode:
		if l, r := s.compute(n.Left), s.compute(n.Right); l != nil && r != nil {
			return computeBinary(n.Operator, l, r)
		}
	case *ast.ConditionalNode:
		return s.computeChoice(n)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && len(n.Arguments) == 1 {
			return computeCall(name.Value, s.compute(n.Arguments[0]))
		}
	case *ast.BuiltinNode:
		if len(n.Arguments) == 1 {
			return computeCall(n.Name, s.compute(n.Arguments[0]))
		}
	case *ast.ArrayNode:
		return s.computeList(n)
	case *ast.MapNode:
		return computeObject(s.computeFields(n))
	}
	switch known := s.compileNative(n); {
	case known.truth != nil:
		return func(m *message) (scalar, bool) { return truthScalar(known.truth(m)), true }
	case known.text != nil:
		return func(m *message) (scalar, bool) { return textScalar(known.text(m)), true }
	case known.whole != nil:
		return func(m *message) (scalar, bool) { return intScalar(known.whole(m)), true }
	default:
		return nil
	}
}

func always(v scalar) computed { return func(*message) (scalar, bool) { return v, true } }

// constant is a number as the type checker has it: a whole one may have become a float.
func constant(n ast.Node, f float64, i int64) computed {
	t := n.Type()
	switch {
	case t != nil && t.Kind() == reflect.Float64:
		return always(floatScalar(f))
	case t != nil && t.Kind() == reflect.Int:
		return always(intScalar(i))
	default:
		return nil
	}
}

// computeMember is a field of the value, or of a field of it.
func (s scope) computeMember(n *ast.MemberNode) computed {
	property, ok := n.Property.(*ast.StringNode)
	if !ok || n.Optional || n.Method {
		return nil
	}
	name := property.Value
	if id, ok := n.Node.(*ast.IdentifierNode); ok {
		if id.Value != "value" {
			return nil
		}
		return func(m *message) (scalar, bool) { return m.value.field(name) }
	}
	of, ok := n.Node.(*ast.MemberNode)
	if !ok {
		return nil
	}
	object := s.computeMember(of)
	if object == nil {
		return nil
	}
	return func(m *message) (scalar, bool) {
		v, ok := object(m)
		if !ok {
			return scalar{}, false
		}
		inner, ok := v.v.(map[string]any)
		return scalarOf(inner[name]), ok
	}
}

func (s scope) computeUnary(n *ast.UnaryNode) computed {
	of := s.compute(n.Node)
	if of == nil {
		return nil
	}
	switch n.Operator {
	case "!", "not":
		return func(m *message) (scalar, bool) {
			v, ok := of(m)
			return truthScalar(!v.truth()), ok && v.kind == truthKind
		}
	case "-":
		return func(m *message) (scalar, bool) {
			v, ok := of(m)
			if v.kind == intKind {
				return intScalar(-v.int()), ok
			}
			return floatScalar(-v.float()), ok && v.kind == floatKind
		}
	default:
		return nil
	}
}

func (s scope) computeChoice(n *ast.ConditionalNode) computed {
	cond, yes, no := s.compute(n.Cond), s.compute(n.Exp1), s.compute(n.Exp2)
	if cond == nil || yes == nil || no == nil {
		return nil
	}
	return func(m *message) (scalar, bool) {
		v, ok := cond(m)
		switch {
		case !ok || v.kind != truthKind:
			return scalar{}, false
		case v.truth():
			return yes(m)
		default:
			return no(m)
		}
	}
}

// computeCall is one of the functions of one argument.
func computeCall(name string, of computed) computed {
	var text func(string) string
	switch {
	case of == nil:
		return nil
	case name == "lower":
		text = strings.ToLower
	case name == "upper":
		text = strings.ToUpper
	case name == "trim":
		text = strings.TrimSpace
	case name == "int":
		return func(m *message) (scalar, bool) {
			v, ok := of(m)
			if v.kind == floatKind {
				return intScalar(int64(wholeOf(v.float()))), ok
			}
			return v, ok && v.kind == intKind
		}
	case name == "float":
		return func(m *message) (scalar, bool) {
			v, ok := of(m)
			return floatScalar(v.float()), ok && v.isNumber()
		}
	case name == "string":
		return func(m *message) (scalar, bool) {
			v, ok := of(m)
			if v.kind == intKind {
				return textScalar(strconv.FormatInt(v.int(), 10)), ok
			}
			return v, ok && v.kind == textKind
		}
	default:
		return nil
	}
	return func(m *message) (scalar, bool) {
		v, ok := of(m)
		if !ok || v.kind != textKind {
			return scalar{}, false
		}
		return textScalar(text(v.text)), true
	}
}

func (s scope) computeList(n *ast.ArrayNode) computed {
	items := make([]computed, len(n.Nodes))
	for i, one := range n.Nodes {
		if items[i] = s.compute(one); items[i] == nil {
			return nil
		}
	}
	return func(m *message) (scalar, bool) {
		out := make([]any, len(items))
		for i, item := range items {
			v, ok := item(m)
			if !ok {
				return scalar{}, false
			}
			out[i] = v.boxed()
		}
		return scalar{kind: otherKind, v: out}, true
	}
}

// computeFields are those of an object in order of name.
func (s scope) computeFields(n *ast.MapNode) []namedField {
	out := make([]namedField, 0, len(n.Pairs))
	for _, one := range n.Pairs {
		pair, ok := one.(*ast.PairNode)
		if !ok {
			return nil
		}
		name, ok := pair.Key.(*ast.StringNode)
		value := s.compute(pair.Value)
		if !ok || value == nil || slices.ContainsFunc(out, func(o namedField) bool { return o.name == name.Value }) {
			return nil
		}
		out = append(out, namedField{name.Value, value})
	}
	slices.SortFunc(out, func(a, b namedField) int { return cmp.Compare(a.name, b.name) })
	return out
}

func computeObject(named []namedField) computed {
	if named == nil {
		return nil
	}
	return func(m *message) (scalar, bool) {
		out := make(map[string]any, len(named))
		for i := range named {
			v, ok := named[i].value(m)
			if !ok {
				return scalar{}, false
			}
			out[named[i].name] = v.boxed()
		}
		return scalar{kind: otherKind, v: out}, true
	}
}
