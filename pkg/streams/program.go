package streams

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/streamworker/streamworker/pkg/topology"
)

// entry is a stream or a table of the topology's text: a chain of nodes.
type entry struct {
	name  string
	table bool
	steps []line
	from  fields
	at    place
	first *node
}

// line is a step, and where in the program it is said.
type line struct {
	step fields
	at   place
}

// Program is what the builder has so far.
func (b *Builder) Program() *topology.Program {
	w := &writer{taken: make(map[string]bool)}
	for _, n := range b.nodes {
		n.entry = nil
	}
	for _, n := range b.nodes { // parents come before their kids
		w.add(n)
	}
	var src bytes.Buffer
	var places []place
	put := func(at place, format string, args ...any) {
		fmt.Fprintf(&src, format+"\n", args...)
		places = append(places, at)
	}
	for _, table := range []bool{false, true} {
		begun := false
		for _, e := range w.entries {
			if e.table != table {
				continue
			}
			if !begun {
				put(place{}, "%s:", map[bool]string{false: "streams", true: "tables"}[table])
				begun = true
			}
			put(e.at, "  - name: %s", text(e.name))
			put(e.at, "    from: %s", text(e.from))
			if e.first.ttl != 0 {
				put(e.at, "    ttl: %s", e.first.ttl)
			}
			if e.first.global {
				put(e.at, "    global: true")
				continue
			}
			if len(e.steps) == 0 {
				put(e.at, "    steps: []")
				continue
			}
			put(e.at, "    steps:")
			for _, l := range e.steps {
				put(l.at, "      - %s", text(l.step))
			}
		}
	}
	if src.Len() == 0 {
		put(place{}, "streams: []")
	}
	return &topology.Program{Text: src.Bytes(), Attached: b.attached, Places: func(line int) (string, int) {
		if line < 1 || line > len(places) {
			return "", 0
		}
		return places[line-1].file, places[line-1].line
	}}
}

// text is v as JSON, which is YAML too.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("streams: a part of a topology has no JSON form: %v", err)) // which this package makes of texts and numbers
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// writer puts nodes into entries.
type writer struct {
	entries []*entry
	taken   map[string]bool
}

// isTable tells whether the node is a table in the text: one that is not used as such is a step of a stream.
func (n *node) isTable() bool {
	return n.table && (n.asTable || n.parent == nil || n.parent.isTable())
}

// continues tells whether the node goes on in its parent's entry.
func (n *node) continues() bool {
	p := n.parent
	return p != nil && n.branch == "" && len(p.kids) == 1 && len(p.users) == 0 && n.isTable() == p.entry.table
}

func (w *writer) add(n *node) {
	if n.continues() {
		n.entry = n.parent.entry
	} else {
		n.entry = &entry{name: w.name(n), table: n.isTable(), at: n.at, first: n}
		w.entries = append(w.entries, n.entry)
		switch {
		case n.from != nil:
			n.entry.from = n.from()
		default:
			n.entry.from = n.parent.reference()
			if n.branch != "" {
				n.entry.from = n.entry.from.with("branch", n.branch)
			}
		}
	}
	if n.before != nil {
		n.entry.steps = append(n.entry.steps, line{n.before, n.at})
	}
	if n.step != nil {
		n.entry.steps = append(n.entry.steps, line{n.step(), n.at})
	}
	n.entry.steps = append(n.entry.steps, n.sinks...)
}

// reference names the entry that ends with the node.
func (n *node) reference() fields {
	if n.entry.table {
		return fields{{"table", n.entry.name}}
	}
	return fields{{"stream", n.entry.name}}
}

// name finds one for the entry that a node begins.
func (w *writer) name(n *node) string {
	base := n.name
	if base == "" {
		base = n.parent.entry.name
	}
	name := base
	for i := 2; w.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	w.taken[name] = true
	return name
}
