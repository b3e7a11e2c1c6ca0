package topology

import (
	"github.com/expr-lang/expr/ast"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// What follows an aggregate that emits at commits has no record to stop before, under on_error: fail. So nothing is allowed there
// that may fail: it is refused when the file is read.

const (
	fallible   = "at a commit there is no record to stop before, and this %s may fail"
	fallibleBy = "set on_error: skip or dead_letter in the stream's from, do it before the aggregate, or leave emit: commit out"
)

// mustNotFail says that the steps from here on must not be able to fail.
func (c *cutter) mustNotFail() bool { return c.atCommit && c.source.OnError == Stop }

// refuse reports a step that may fail where none must.
func (c *cutter) refuse(what string, node yamlnode.Node) { node.Errorf(fallibleBy, fallible, what) }

// checkAtCommit reports what an expression behind an aggregate that emits at commits must not do.
func (c *cutter) checkAtCommit(e *expression) {
	const ofRecord = usesTopic | usesPartition | usesOffset | usesHeaders
	switch {
	case !c.atCommit:
	case e.uses&ofRecord != 0:
		e.node.Errorf("use key, value and timestamp, or do it before the aggregate",
			"topic, partition, offset and headers are a record's, and what comes at a commit is of no single one")
	case e.text == "key" || e.text == "value": // is passed on as it is
	case c.mustNotFail() && (!e.total || c.nullable && e.uses&usesValue != 0):
		c.refuse("expression", e.node)
	}
}

// checkFold reports an aggregate that may fail where nothing must; typ is what it folds. It notes whether what the steps
// after it see may be null.
func (c *cutter) checkFold(s *aggregateStep, typ resultType, at yamlnode.Node) {
	known := typ.shape == single && typ.format != JSON
	fails := false
	switch s.name {
	case "sum":
		fails = !known || typ.format == Int // which may overflow
	case "min", "max":
		fails = !known
	case "collect", "count_distinct":
		fails = !known || typ.format == Float // which may have no JSON form
	}
	if fails && c.mustNotFail() {
		c.refuse(s.name, at)
	}
	c.nullable = s.name == "reduce" && !s.expr.total
}

// total reports whether an expression gives a result for all keys and values but nulls, one that can be written. It
// knows of those without an argument of unknown type; the types of the others fit, as the expression was compiled.
func total(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return true
	case *ast.IdentifierNode:
		return known(n)
	case *ast.UnaryNode:
		return total(n.Node)
	case *ast.BinaryNode:
		switch n.Operator {
		case "+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", "and", "&&", "or", "||", "contains", "startsWith", "endsWith":
			return allTotal(n.Left, n.Right)
		}
	case *ast.ConditionalNode:
		return known(n) && allTotal(n.Cond, n.Exp1, n.Exp2)
	case *ast.BuiltinNode:
		return totalCall(n.Name, n.Arguments)
	case *ast.CallNode:
		if f, ok := n.Callee.(*ast.IdentifierNode); ok {
			return totalCall(f.Value, n.Arguments)
		}
	case *ast.ArrayNode:
		return inJSON(n.Nodes...)
	case *ast.MapNode:
		for _, one := range n.Pairs {
			pair, ok := one.(*ast.PairNode)
			if !ok || !total(pair.Key) || typeOf(pair.Key.Nature()) != (resultType{format: String}) || !inJSON(pair.Value) {
				return false
			}
		}
		return true
	}
	return false
}

func totalCall(name string, args []ast.Node) bool {
	switch name {
	case "lower", "upper", "trim", "len", "string":
		return len(args) == 1 && allTotal(args...)
	case "split":
		return len(args) == 2 && allTotal(args...)
	case "int", "float": // of a text they may fail
		return len(args) == 1 && allTotal(args...) && typeOf(args[0].Nature()).number()
	default:
		return false
	}
}

// allTotal is total for what is computed with: a literal object or list does not do.
func allTotal(nodes ...ast.Node) bool {
	for _, n := range nodes {
		if !known(n) || !total(n) {
			return false
		}
	}
	return true
}

// inJSON is total for parts of an object or a list. A float may turn out to have no JSON form.
func inJSON(nodes ...ast.Node) bool {
	for _, n := range nodes {
		t := typeOf(n.Nature())
		if !total(n) || t.shape == opaque || t.format == Float || t.format == Bytes {
			return false
		}
	}
	return true
}

// known reports whether the type is one that keys and values have outside JSON, or a list of such.
func known(n ast.Node) bool {
	t := typeOf(n.Nature())
	return t.shape == truth || (t.shape == single || t.shape == list) && t.format != JSON
}

func (t resultType) number() bool { return t.shape == single && (t.format == Int || t.format == Float) }
