package yamlnode

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// File is a parsed file with the problems found in it so far.
type File struct {
	name     string
	root     ast.Node
	anchors  map[string]ast.Node
	lookup   func(string) (string, bool)
	prefix   string // of variables that override values; "": none do
	problems Problems
	fields   []*Field
	byPath   map[string]*Field
	program  *program // nil: the file was not written by one
}

// Parse reads src. lookup resolves ${NAME} in values; nil leaves them as they are. A file that is not
// YAML gives a File with an empty root and the reason among its problems.
func Parse(name string, src []byte, lookup func(string) (string, bool)) *File {
	f := &File{name: name, lookup: lookup, anchors: make(map[string]ast.Node), byPath: make(map[string]*Field)}
	parsed, err := parser.ParseBytes(src, 0)
	if err != nil {
		f.syntaxError(err)
		return f
	}
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if f.root != nil {
			Node{f: f, n: doc.Body}.Errorf("write one file for each", "a second document starts here")
			break
		}
		f.root = doc.Body
		ast.Walk(anchorVisitor(f.anchors), doc.Body)
		ast.Walk(aliasVisitor{f}, doc.Body)
	}
	if f.root == nil {
		f.add(Problem{Line: 1, Column: 1, Message: "the file is empty", Caret: -1})
	}
	return f
}

// Override lets environment variables replace single values, outside of lists. The variable of the value a.b is the
// prefix and A_B. An empty one counts as not set.
func (f *File) Override(prefix string) { f.prefix = prefix }

// Variable is the name of the environment variable for a path.
func Variable(prefix, path string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// override is the variable that replaces the value of that path, if it is set.
func (f *File) override(path string) (name, text string, set bool) {
	if f.prefix == "" || f.lookup == nil || strings.Contains(path, "[") {
		return "", "", false
	}
	name = Variable(f.prefix, path)
	text, _ = f.lookup(name)
	return name, text, text != ""
}

// Root is the file's top value; absent if the file could not be parsed.
func (f *File) Root() Node { return Node{f: f, n: f.root} }

// Err returns the problems found so far as Problems, or nil.
func (f *File) Err() error {
	if problems := f.Problems(); len(problems) > 0 {
		return problems
	}
	return nil
}

// Problems are those found so far, in the order of their places; none if f is nil.
func (f *File) Problems() Problems {
	if f == nil {
		return nil
	}
	return f.problems.ordered()
}

// Errorf records a problem that no place in the file is to blame for, such as a wrong flag.
func (f *File) Errorf(hint, format string, args ...any) {
	f.add(Problem{Message: fmt.Sprintf(format, args...), Hint: hint, Caret: -1})
}

func (f *File) add(p Problem) {
	p.File = f.name
	f.program.place(&p)
	f.problems = append(f.problems, p)
}

// addElsewhere records a problem with an environment variable.
func (f *File) addElsewhere(variable string, p Problem) {
	p.File = "environment variable " + variable
	f.problems = append(f.problems, p)
}

func (f *File) syntaxError(err error) {
	p := Problem{Line: 1, Column: 1, Message: "not valid YAML: " + err.Error(), Caret: -1}
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &placed) {
		p.Message = "not valid YAML: " + placed.GetMessage()
		if t := placed.GetToken(); t != nil && t.Position != nil {
			p.Line, p.Column = t.Position.Line, t.Position.Column
		}
	}
	f.add(p)
}

// anchorVisitor collects the anchored values of a document by name.
type anchorVisitor map[string]ast.Node

func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		v[a.Name.GetToken().Value] = a.Value
	}
	return v
}

// aliasVisitor reports aliases of anchors that do not exist.
type aliasVisitor struct{ f *File }

func (v aliasVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AliasNode); ok {
		if name := a.Value.GetToken().Value; v.f.anchors[name] == nil {
			Node{f: v.f, n: a}.Errorf("", "no value is marked &%s", name)
		}
	}
	return v
}
