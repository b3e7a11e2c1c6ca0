package format

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/avro"
)

// avroType is a type of a schema, made for writing.
type avroType struct {
	kind      string // e.g. "record"; "union" has branches
	name      string // with its namespace, of a record, an enum or a fixed
	logical   string
	fields    []avroField
	known     map[string]bool // names of the fields
	items     *avroType       // of an array or a map
	branches  []*avroType
	nullable  int // the branch that is null; -1: none
	symbols   map[string]int
	size      int
	precision int
	scale     int
}

type avroField struct {
	name string
	typ  *avroType
	// absent is what is written for a field that a value does not have; nil: it must have it.
	absent []byte
}

// compileAvro compiles the last of some schemas, which may refer to types in those before.
func compileAvro(roots []*avro.SchemaNode) (*avroType, error) {
	c := avroCompiler{types: make(map[string]*avroType)}
	var last *avroType
	for _, root := range roots {
		t, err := c.compile(root, "")
		if err != nil {
			return nil, err
		}
		last = t
	}
	// Defaults may be of types that are complete only now.
	for _, set := range c.defaults {
		if err := set(); err != nil {
			return nil, err
		}
	}
	return last, nil
}

type avroCompiler struct {
	types    map[string]*avroType
	defaults []func() error
}

func (c *avroCompiler) compile(n *avro.SchemaNode, namespace string) (*avroType, error) {
	t := &avroType{kind: n.Type, logical: n.LogicalType, size: n.Size, precision: n.Precision, scale: n.Scale, nullable: -1}
	switch n.Type {
	case "null", "boolean", "int", "long", "float", "double", "string", "bytes":
		return t, nil
	case "error":
		t.kind = "record"
	}
	var err error
	switch t.kind {
	case "array":
		t.items, err = c.compile(n.Items, namespace)
	case "map":
		t.items, err = c.compile(n.Values, namespace)
	case "union":
		err = c.union(t, n, namespace)
	case "record", "enum", "fixed":
		if t.name = n.Name; n.Namespace != "" && !strings.Contains(n.Name, ".") {
			t.name = n.Namespace + "." + n.Name
		}
		c.types[t.name] = t
		t.symbols = make(map[string]int, len(n.Symbols))
		for i, s := range n.Symbols {
			t.symbols[s] = i
		}
		err = c.record(t, n)
	default:
		return c.named(n.Type, namespace)
	}
	return t, err
}

// named finds a type by the name that a schema refers to it with.
func (c *avroCompiler) named(name, namespace string) (*avroType, error) {
	if t := c.types[namespace+"."+name]; t != nil {
		return t, nil
	}
	if t := c.types[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no type %s", name)
}

func (c *avroCompiler) union(t *avroType, n *avro.SchemaNode, namespace string) error {
	for i := range n.Branches {
		branch, err := c.compile(&n.Branches[i], namespace)
		if err != nil {
			return err
		}
		if branch.kind == "null" {
			t.nullable = i
		}
		t.branches = append(t.branches, branch)
	}
	return nil
}

func (c *avroCompiler) record(t *avroType, n *avro.SchemaNode) error {
	t.fields, t.known = make([]avroField, len(n.Fields)), make(map[string]bool, len(n.Fields))
	for i, f := range n.Fields {
		typ, err := c.compile(&f.Type, t.name[:max(0, strings.LastIndexByte(t.name, '.'))])
		if err != nil {
			return inField(f.Name, err)
		}
		field := &t.fields[i]
		field.name, field.typ = f.Name, typ
		t.known[f.Name] = true
		switch {
		case f.HasDefault:
			c.defaults = append(c.defaults, func() (err error) {
				if field.absent, err = field.typ.append([]byte{}, f.Default); err != nil {
					return inField(field.name, fmt.Errorf("its default: %w", err))
				}
				return nil
			})
		case typ.kind == "null" || typ.nullable >= 0:
			c.defaults = append(c.defaults, func() (err error) {
				field.absent, err = field.typ.append([]byte{}, nil)
				return err
			})
		}
	}
	return nil
}

func (t *avroType) String() string {
	switch {
	case t.kind == "union":
		names := make([]string, len(t.branches))
		for i, b := range t.branches {
			names[i] = b.String()
		}
		return "one of " + strings.Join(names, ", ")
	case t.kind == "enum":
		return fmt.Sprintf("one of the symbols %s", strings.Join(slices.SortedFunc(maps.Keys(t.symbols), func(a, b string) int { return t.symbols[a] - t.symbols[b] }), ", "))
	case t.name != "":
		return t.kind + " " + t.name
	case t.logical != "":
		return t.logical
	default:
		return t.kind
	}
}
