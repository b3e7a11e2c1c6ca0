package topology

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// shape is what an expression gives.
type shape uint8

const (
	single shape = iota // something that has a format
	truth               // true or false
	list                // a list; format is that of its elements
	null                // always null
	opaque              // nothing that could be written, e.g. a function
)

// resultType is the static type of an expression.
type resultType struct {
	shape  shape
	format Format // of single, and of the elements of list
}

func (t resultType) String() string {
	switch t.shape {
	case truth:
		return "a bool"
	case list:
		return "a list of " + t.format.String()
	case null:
		return "null"
	case opaque:
		return "no value"
	default:
		return t.format.String()
	}
}

// usage says which names of its environment an expression reads.
type usage uint16

const (
	usesKey usage = 1 << iota
	usesValue
	usesAcc
	usesTimestamp
	usesTopic
	usesPartition
	usesOffset
	usesHeaders
	usesWindow
	usesOther
	usesFields // of the value, and nothing else of it
)

var names = map[string]usage{
	"key": usesKey, "value": usesValue, "acc": usesAcc, "timestamp": usesTimestamp, "topic": usesTopic,
	"partition": usesPartition, "offset": usesOffset, "headers": usesHeaders, "window_start": usesWindow, "window_end": usesWindow, "other": usesOther,
	"$env": usesOther | usesWindow | usesKey | usesValue | usesAcc | usesTimestamp | usesTopic | usesPartition | usesOffset | usesHeaders,
}

// scope is what an expression can see.
type scope struct {
	key, value Format
	acc        bool // there is the value so far
	accOf      Format
	window     bool // the bounds of one
	joined     bool // there is the value of another stream or table as well
	other      Format
	// left and right say that value and other may be missing: they have no type, so that they can be compared with nil.
	left, right bool
}

func (s scope) env() types.Map {
	env := types.Map{
		"key": s.key.exprType(), "value": s.value.exprType(), "timestamp": types.Int, "topic": types.String,
		"partition": types.Int, "offset": types.Int, "headers": types.TypeOf(map[string]string{}),
	}
	if s.acc {
		env["acc"] = s.accOf.exprType()
	}
	if s.left {
		env["value"] = types.Any
	}
	if s.joined {
		if env["other"] = s.other.exprType(); s.right {
			env["other"] = types.Any
		}
	}
	if s.window {
		env["window_start"], env["window_end"] = types.Int, types.Int
	}
	return env
}

func (s scope) String() string {
	text := fmt.Sprintf("key is %s, value is %s", s.key, s.value)
	if s.acc {
		text += ", acc is " + s.accOf.String()
	}
	if s.joined {
		text += ", other is " + s.other.String()
	}
	if s.left || s.right {
		text += "; what is missing is nil"
	}
	if s.window {
		text += ", window_start and window_end are int"
	}
	return text
}

func (f Format) exprType() types.Type {
	switch f {
	case String:
		return types.String
	case Bytes:
		return types.TypeOf([]byte(nil))
	case Int:
		return types.Int
	case Float:
		return types.Float64
	default:
		return types.Any
	}
}

// expression is a compiled expression.
type expression struct {
	node    yamlnode.Node
	text    string
	scope   scope
	program *vm.Program
	uses    usage
	typ     resultType
	native  native
	fn      *Func // in place of a program
	total   bool  // gives a result for all keys and values but nulls
}

// compile reads the expression at node; its mistakes are reported there and give nil.
func compile(node yamlnode.Node, s scope) *expression {
	if f, ok := node.Attached().(*Func); ok {
		return f.expression(node, s)
	}
	text, ok := node.Text()
	if !ok {
		hint := "write an expression, e.g. lower(value)"
		if node.IsMap() || node.IsList() {
			hint = "put quotes around an expression that starts with { or ["
		}
		node.Errorf(hint, "want an expression")
		return nil
	}
	// Types are read before optimization, which replaces nodes and forgets some of them.
	checked, err := expr.Compile(text, s.options(expr.Optimize(false))...)
	if err != nil {
		reportExpression(node, s, err)
		return nil
	}
	program, err := expr.Compile(text, s.options()...)
	if err != nil {
		reportExpression(node, s, err)
		return nil
	}
	root := checked.Node()
	e := &expression{node: node, text: strings.TrimSpace(text), scope: s, program: program, typ: typeOf(root.Nature()), native: s.native(root), total: total(root)}
	ast.Walk(&root, usageVisitor{&e.uses})
	return e
}

func (s scope) options(more ...expr.Option) []expr.Option {
	return append(more, expr.Env(s.env()), expr.Function("string", toText, new(func(any) string)),
		expr.Function("int", toWhole, new(func(int) int), new(func(float64) int), new(func(string) int), new(func(time.Duration) int)))
}

// toText is the string() of expressions: unlike the library's it refuses null, takes bytes as text and
// writes floats without an exponent where that is shortest.
func toText(args ...any) (any, error) {
	switch v := args[0].(type) {
	case nil:
		return nil, errors.New("string(null)")
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		if v > -1e15 && v < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64), nil
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		return fmt.Sprintf("%v", v), nil
	}
}

type usageVisitor struct{ uses *usage }

func (v usageVisitor) Visit(n *ast.Node) {
	if id, ok := (*n).(*ast.IdentifierNode); ok {
		*v.uses |= names[id.Value]
	}
}

// typeOf maps the expression library's types to ours.
func typeOf(n *nature.Nature) resultType {
	cache := new(nature.Cache)
	if n.Nil {
		return resultType{shape: null}
	}
	if n.IsUnknown(cache) {
		return resultType{format: JSON}
	}
	switch n.Kind {
	case reflect.String:
		return resultType{format: String}
	case reflect.Bool:
		return resultType{shape: truth, format: JSON}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		if n.IsDuration() {
			return resultType{format: JSON}
		}
		return resultType{format: Int}
	case reflect.Float32, reflect.Float64:
		return resultType{format: Float}
	case reflect.Slice, reflect.Array:
		if n.IsByteSlice() {
			return resultType{format: Bytes}
		}
		elem := n.Elem(cache)
		of := typeOf(&elem)
		if of.shape != single {
			of.format = JSON
		}
		return resultType{shape: list, format: of.format}
	case reflect.Map:
		if n.Type.Key().Kind() == reflect.String {
			return resultType{format: JSON}
		}
	case reflect.Struct:
		if n.IsTime() {
			return resultType{format: JSON}
		}
	default:
	}
	return resultType{shape: opaque}
}

// reportExpression turns the library's error into a problem at the right place with a remedy.
func reportExpression(node yamlnode.Node, s scope, err error) {
	var at *file.Error
	if !errors.As(err, &at) {
		node.Errorf("", "%v", err)
		return
	}
	message, hint := strings.TrimSpace(at.Message), "here "+s.String()
	if name, unknown := strings.CutPrefix(message, "unknown name "); unknown {
		message = fmt.Sprintf("unknown name %q", name)
		if near := yamlnode.Nearest(name, s.known()); near != "" {
			hint = "did you mean " + near + "? (" + hint + ")"
		} else {
			hint += "; known too: timestamp, topic, partition, offset, headers and the language's functions"
		}
	}
	if strings.Contains(message, "mismatched types") || strings.HasPrefix(message, "cannot use ") {
		hint = "convert with string(), int() or float(); " + hint
	}
	node.ExprErrorf(at.Line, at.Column, hint, "%s", message)
}

// known lists the names that an expression may use.
func (s scope) known() []string {
	var out []string
	for name := range s.env() {
		out = append(out, name)
	}
	for _, f := range builtin.Builtins {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return out
}
