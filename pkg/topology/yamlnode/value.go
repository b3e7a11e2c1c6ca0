package yamlnode

import (
	"math"

	"github.com/goccy/go-yaml/ast"
)

// Place returns line and column of the value, from 1; 0 if the file does not have it.
func (n Node) Place() (line, column int) { return n.place() }

// Value returns the value as JSON has it: nil, bool, int, float64, string, []any or map[string]any. References such as ${NAME}
// stay as they are. A number too large for an int is a float64.
func (n Node) Value() any {
	switch v := n.value().(type) {
	case *ast.BoolNode:
		return v.Value
	case *ast.IntegerNode:
		switch i := v.Value.(type) {
		case int64:
			return int(i)
		case uint64:
			if i > math.MaxInt64 {
				return float64(i)
			}
			return int(i)
		}
	case *ast.FloatNode:
		return v.Value
	case *ast.InfinityNode:
		return v.Value
	case *ast.NanNode:
		return math.NaN()
	case *ast.SequenceNode:
		out := make([]any, len(v.Values))
		for i, item := range n.items() {
			out[i] = item.Value()
		}
		return out
	case *ast.MappingNode, *ast.MappingValueNode:
		m := n.Map()
		out := make(map[string]any, len(m.fields))
		for _, f := range m.fields {
			out[f.name] = f.node.Value()
		}
		return out
	}
	if text, ok := n.scalar(); ok {
		return text
	}
	return nil
}
