package yamlnode

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Map is a mapping being read. It remembers which fields were asked for, so that Done can report the others.
type Map struct {
	node   Node
	fields []field
	asked  []string
}

type field struct {
	name string
	node Node
}

// Map reads the value as a mapping; anything else but an absent value is a problem.
func (n Node) Map() *Map {
	n = n.written()
	m := &Map{node: n}
	if n.Exists() {
		m.collect(n, 0)
	}
	return m
}

// collect adds the fields of one mapping; those that stand there outrank those merged in by "<<".
func (m *Map) collect(n Node, depth int) {
	var values []*ast.MappingValueNode
	switch v := n.value().(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	default:
		n.Errorf("", "want a mapping of fields to values, got %s", n.kind())
		return
	}
	var merged []Node
	for _, kv := range values {
		child := Node{f: n.f, n: kv.Value, key: kv.Key}
		if kv.Key.IsMergeKey() {
			child = child.Named(n.path)
			if child.isList() {
				merged = append(merged, child.items()...)
			} else {
				merged = append(merged, child)
			}
			continue
		}
		name := kv.Key.GetToken().Value
		child.path = join(m.node.path, name)
		if _, there := m.find(name); !there {
			m.fields = append(m.fields, field{name: name, node: child})
		}
	}
	for _, child := range merged {
		if depth < maxIndirection {
			m.collect(child, depth+1)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (m *Map) find(name string) (Node, bool) {
	for _, f := range m.fields {
		if f.name == name {
			return f.node, true
		}
	}
	return Node{}, false
}

// Get returns the field of that name, absent if the mapping has none.
func (m *Map) Get(name string) Node {
	m.asked = append(m.asked, name)
	n, ok := m.find(name)
	if !ok {
		n = Node{f: m.node.f, path: join(m.node.path, name)}
	}
	if variable, text, set := m.node.f.override(n.path); set {
		n.variable, n.text = variable, text
	}
	if n.f != nil {
		n.f.field(n.path)
	}
	return n
}

// Require is Get for a field that must be there.
func (m *Map) Require(name, hint string) Node {
	n := m.Get(name)
	n.f.field(n.path).Required = true
	if !n.Exists() {
		m.node.Errorf(hint, "%s is missing", name)
	}
	return n
}

// Names returns the names of all fields, in the file's order.
func (m *Map) Names() []string {
	out := make([]string, len(m.fields))
	for i, f := range m.fields {
		out[i] = f.name
	}
	return out
}

// Key returns the field's key as a node, to point at the key rather than at its value.
func (m *Map) Key(name string) Node {
	n := m.Get(name)
	return Node{f: n.f, n: n.key, path: m.node.path}
}

// Done reports the fields that nobody asked for.
func (m *Map) Done() {
	for _, f := range m.fields {
		known := false
		for _, a := range m.asked {
			known = known || a == f.name
		}
		if known {
			continue
		}
		key := Node{f: f.node.f, n: f.node.key, path: m.node.path}
		hint := "known here: " + strings.Join(m.asked, ", ")
		if near := Nearest(f.name, m.asked); near != "" {
			hint = "did you mean " + near + "? (" + hint + ")"
		}
		key.Errorf(hint, "unknown field %q", f.name)
	}
}
