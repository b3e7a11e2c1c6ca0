package yamlnode

import (
	"slices"
	"strings"
)

// Kind is what a value is read as.
type Kind string

// The kinds of values.
const (
	Text     Kind = "text"
	Secret   Kind = "secret" // text that is not shown
	Choice   Kind = "choice"
	Bool     Kind = "bool"
	Integer  Kind = "integer"
	Duration Kind = "duration"
	Size     Kind = "size"
	Rate     Kind = "rate"
	Texts    Kind = "map of texts"
	List     Kind = "list"
)

// Field is a value that was asked for, whether the file has it or not. A file's fields tell what its reader knows.
type Field struct {
	Path        string
	Kinds       []Kind // several, if it may be written in several ways; none: as a mapping, or not at all
	Required    bool
	Default     any      // int64, bool or string; durations and sizes as they are written
	Least, Most any      // of numbers, durations and sizes, as Default
	Choices     []string // of a Choice
	Value       any      // what it has come to: as Default, []string or map[string]string; of a Secret, that there is one; nil: none
}

// Is tells whether the field is read as that kind.
func (f *Field) Is(k Kind) bool { return slices.Contains(f.Kinds, k) }

// Fields are the values that were asked for so far, in this order, each once.
func (f *File) Fields() []*Field { return f.fields }

// field is that of a path, made if need be.
func (f *File) field(path string) *Field {
	if known := f.byPath[path]; known != nil {
		return known
	}
	added := &Field{Path: path}
	f.fields, f.byPath[path] = append(f.fields, added), added
	return added
}

// record notes how the value was read, and what came of it.
func (n Node) record(kind Kind, def, least, most, value any, choices ...string) {
	field := n.recordKind(kind)
	field.Default, field.Least, field.Most, field.Value = def, least, most, value
	if choices != nil {
		field.Choices = choices
	}
}

// recordKind notes only that this is one of the ways to write the value.
func (n Node) recordKind(kind Kind) *Field {
	field := n.f.field(n.path)
	if !field.Is(kind) {
		field.Kinds = append(field.Kinds, kind)
	}
	return field
}

// Become notes what a value has come to where others than the file decide: a flag, or other values.
func (n Node) Become(value any) { n.f.field(n.path).Value = value }

// Under tells whether a path is that of a value inside of another's.
func Under(path, other string) bool { return strings.HasPrefix(path, other+".") }
