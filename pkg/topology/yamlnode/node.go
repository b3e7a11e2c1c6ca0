package yamlnode

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxIndirection bounds the chain of aliases, anchors and tags around one value.
const maxIndirection = 16

// Node is one value of a file. The zero Node, and that of a field which the file leaves out, is absent:
// all readers then give their default.
type Node struct {
	f    *File
	n    ast.Node // nil: absent
	key  ast.Node // the key it stands under, if any: where to point when the value itself is empty
	path string   // e.g. "kafka.brokers", for messages

	variable string // of the environment, whose text replaces the value; "": none
	text     string
}

// Absent is a value that the file of near does not have.
func Absent(near Node) Node { return Node{f: near.f, path: near.path} }

// Exists reports whether the file has this value and it is not null.
func (n Node) Exists() bool {
	if n.variable != "" {
		return true
	}
	v := n.value()
	return v != nil && v.Type() != ast.NullType
}

// Path is how messages name the value, e.g. "kafka.brokers".
func (n Node) Path() string { return n.path }

// Line and column of the value, from 1.
func (n Node) place() (line, column int) {
	for _, at := range []ast.Node{n.n, n.key} {
		if at == nil {
			continue
		}
		t := at.GetToken()
		if m, ok := at.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
			t = m.Values[0].Key.GetToken()
		}
		if t != nil && t.Position != nil && (at.Type() != ast.NullType || n.key == nil) {
			return t.Position.Line, max(t.Position.Column, 1)
		}
	}
	return 0, 0
}

// Errorf records a problem with this value; hint says what to do and may be empty.
func (n Node) Errorf(hint, format string, args ...any) {
	if n.variable != "" {
		n.f.addElsewhere(n.variable, Problem{Message: n.prefix() + fmt.Sprintf(format, args...), Hint: hint, Caret: -1})
		return
	}
	line, column := n.place()
	n.f.add(Problem{Line: line, Column: column, Message: n.prefix() + fmt.Sprintf(format, args...), Hint: hint, Caret: -1})
}

func (n Node) prefix() string {
	if n.path == "" {
		return ""
	}
	return n.path + ": "
}

// ExprErrorf records a problem inside the text of this value, at the given line (from 1) and column (from 0) of
// the text, and shows the line of it. The place in the file is exact for text written on one line or
// as a literal block; for folded text it is the start of the value.
func (n Node) ExprErrorf(line, column int, hint, format string, args ...any) {
	text, _ := n.scalar()
	lines := strings.Split(text, "\n")
	p := Problem{Message: n.prefix() + fmt.Sprintf(format, args...), Hint: hint, Caret: -1}
	if line >= 1 && line <= len(lines) {
		p.Snippet = strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " ")
		if column >= 0 && column <= utf8.RuneCountInString(p.Snippet) {
			p.Caret = column
		}
	}
	p.Line, p.Column = n.place()
	switch v := n.value().(type) {
	case *ast.LiteralNode:
		if raw := strings.Split(v.Value.GetToken().Origin, "\n"); v.Start.Value[0] == '|' && line >= 1 && line <= min(len(raw), len(lines)) {
			p.Line += line
			indent := leadingSpaces(raw[line-1]) - leadingSpaces(lines[line-1])
			p.Column = indent + 1 + max(column, 0)
		}
	case *ast.StringNode:
		oneLine := !strings.Contains(strings.TrimSpace(v.GetToken().Origin), "\n")
		switch t := v.GetToken().Type; {
		case !oneLine || column < 0:
		case t == token.SingleQuoteType || t == token.DoubleQuoteType:
			p.Column += 1 + column
		default:
			p.Column += column
		}
	case ast.ScalarNode:
		p.Column += max(column, 0)
	}
	n.f.add(p)
}

func leadingSpaces(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// value is the value itself, behind aliases, anchors and tags; nil if absent.
func (n Node) value() ast.Node {
	v := n.n
	for range maxIndirection {
		switch at := v.(type) {
		case *ast.AnchorNode:
			v = at.Value
		case *ast.TagNode:
			v = at.Value
		case *ast.AliasNode:
			v = n.f.anchors[at.Value.GetToken().Value]
		default:
			return joined(v)
		}
		if v == nil {
			return nil
		}
	}
	return nil
}

// joined undoes a mistake of the parser, which takes the plain text host:port for a mapping where it stands in a flow
// list inside a flow mapping. YAML wants a space after the colon of a mapping.
func joined(v ast.Node) ast.Node {
	m, ok := v.(*ast.MappingNode)
	if !ok || m.IsFlowStyle || len(m.Values) != 1 {
		return v
	}
	kv := m.Values[0]
	key, text := kv.Key.GetToken(), kv.Value.GetToken()
	if _, scalar := kv.Value.(ast.ScalarNode); !scalar || text.Position.Line != kv.Start.Position.Line || text.Position.Column != kv.Start.Position.Column+1 {
		return v
	}
	whole := *key
	whole.Value += ":" + text.Value
	whole.Origin = whole.Value
	return ast.String(&whole)
}

// Override is the text by which the environment replaces the value, if it does.
func (n Node) Override() (string, bool) { return n.text, n.variable != "" }

// written is the value as the file has it: the environment replaces only single values.
func (n Node) written() Node { n.variable, n.text = "", ""; return n }

// kind names what the file has there, for messages.
func (n Node) kind() string {
	switch n.value().(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case ast.ScalarNode:
		return "a single value" // which is not shown: it may be a secret in the wrong place
	default:
		return "something else"
	}
}

// List returns the items of a list; anything else than a list is a problem.
func (n Node) List() []Node {
	n.recordKind(List)
	return n.written().items()
}

func (n Node) items() []Node {
	v := n.value()
	if !n.Exists() {
		return nil
	}
	seq, ok := v.(*ast.SequenceNode)
	if !ok {
		n.Errorf("write one item a line, each after \"- \"", "want a list, got %s", n.kind())
		return nil
	}
	out := make([]Node, len(seq.Values))
	for i, item := range seq.Values {
		out[i] = Node{f: n.f, n: item, path: fmt.Sprintf("%s[%d]", n.path, i)}
	}
	return out
}

// IsMap and IsList tell the shape of a value that may be written in several ways.
func (n Node) IsMap() bool {
	switch n.value().(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	default:
		return false
	}
}

// IsList reports whether the value is a list.
func (n Node) IsList() bool {
	n.recordKind(List)
	return n.isList()
}

func (n Node) isList() bool {
	_, ok := n.value().(*ast.SequenceNode)
	return ok && n.variable == ""
}

// Named returns the node with another name for messages.
func (n Node) Named(path string) Node { n.path = path; return n }

// Problems returns the number of problems found in the file so far.
func (n Node) Problems() int { return len(n.f.problems) }
