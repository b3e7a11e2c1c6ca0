package streams

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Builder collects the streams and tables of a topology. It is used by one goroutine.
type Builder struct {
	nodes    []*node
	attached map[string]any
}

// New makes a builder without streams.
func New() *Builder {
	return &Builder{attached: make(map[string]any)}
}

// Build runs a function that says what to compute.
func Build(build func(*Builder)) *topology.Program {
	b := New()
	build(b)
	return b.Program()
}

// Topology builds the topology of an application, e.g. for a test. Its mistakes say where in the Go source they are.
func (b *Builder) Topology(app string) (*topology.Topology, error) { return b.Program().Parse(app) }

// node is a step, or where records come from. It becomes a line of the topology's text. Steps and beginnings are written when the
// names of those that they refer to are known.
type node struct {
	b       *Builder
	parent  *node         // nil: it is where records come from
	from    func() fields // likewise
	step    func() fields // nil: it is where an entry begins
	before  fields        // a step that belongs in front of it; nil: none
	name    string        // wished for the entry that it begins; "": its parent's
	branch  string        // of the parent, that it takes up
	table   bool          // it can be a table
	asTable bool          // it has to be one
	global  bool
	ttl     time.Duration // of the rows of a table from a topic; 0: they stay
	kids    []*node       // that go on from it
	users   []*node       // that take it as a second input
	sinks   []line        // what is written to topics, behind the step
	at      place
	entry   *entry
}

// place is where in the program's source something is said.
type place struct {
	file string
	line int
}

// fields are a mapping, in order.
type fields []field

type field struct {
	name  string
	value any
}

func (f fields) with(name string, value any) fields { return append(f, field{name, value}) }

// MarshalJSON writes the mapping in order.
func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range f {
		if i > 0 {
			b.WriteString(", ")
		}
		name, err := json.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(one.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteString(": ")
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// packagePath is what the names of this package's functions begin with.
const packagePath = "github.com/streamworker/streamworker/pkg/streams."

// here is the place in the program that has called this package.
func here() place {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, packagePath) {
			return place{filepath.Base(f.File), f.Line}
		}
		if !more {
			return place{}
		}
	}
}

// attach gives something a text that stands for it.
func (b *Builder) attach(v any) string {
	at := here()
	text := fmt.Sprintf("function %d, %s:%d", len(b.attached)+1, at.file, at.line)
	b.attached[text] = v
	return text
}

// add adds a node.
func (b *Builder) add(n *node) *node {
	n.b, n.at = b, here()
	if n.parent != nil {
		n.parent.kids = append(n.parent.kids, n)
	}
	b.nodes = append(b.nodes, n)
	return n
}

// then adds a step behind a node.
func (n *node) then(name string, argument any) *node {
	return n.add(&node{step: func() fields { return fields{{name, argument}} }})
}

// add adds a node behind a node.
func (n *node) add(next *node) *node {
	next.parent = n
	return n.b.add(next)
}

// rows makes sure that the node is a table, for a step that needs its rows.
func (n *node) rows() *node {
	n.asTable = true
	return n
}
