package scenario

import (
	"fmt"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// readEvent reads one item of events: a mapping of the event's name to what it is about.
func (r reader) readEvent(n yamlnode.Node) {
	m := n.Map()
	var e event
	for _, k := range []kind{join, leave, ready, crash, timeout, cancelLeave, restart, settle, wait} {
		v := m.Get(string(k))
		if !slices.Contains(m.Names(), string(k)) {
			continue
		}
		if e.kind != none {
			n.Errorf("write one event an item; what happens at one instant goes into one list", "%s and %s in one event", e.kind, k)
			return
		}
		e = event{kind: k, node: m.Key(string(k)).Named(n.Path() + ", " + string(k))}
		r.readSubjects(&e, v)
	}
	m.Done()
	if e.kind == none {
		if n.IsMap() && len(m.Names()) == 0 {
			n.Errorf("e.g. - leave: S2", "an event is missing here")
		}
		return
	}
	r.events = append(r.events, e)
}

func (r reader) readSubjects(e *event, v yamlnode.Node) {
	text, single := v.Text()
	problems := v.Problems()
	v = v.Named(e.node.Path())
	switch {
	case e.kind == settle:
		if !v.Bool(true) {
			e.kind = none
		}
	case e.kind == wait:
		e.seconds = v.Duration(0, 0, maxTime).Seconds()
	case e.kind == ready && single && text == "all":
		e.all = true
	case e.kind == ready:
		m := v.Map()
		for _, name := range m.Names() {
			tasks := m.Get(name).Named(e.node.Path())
			e.subjects = append(e.subjects, subject{name: name, node: m.Key(name).Named(e.node.Path()), tasks: r.readTaskList(tasks)})
		}
		if v.IsMap() && len(e.subjects) == 0 || !v.Exists() {
			v.Errorf("write ready: {S1: [T1]}, or ready: all", "nobody is ready")
		}
	case e.kind != join && v.IsMap():
		m := v.Map()
		s := m.Require("selector", fmt.Sprintf("write %s: S2, or %[1]s: {selector: {pool: blue}}", e.kind))
		if e.selector = s.StringMap(); s.Exists() && len(e.selector) == 0 {
			s.Errorf("name a label, e.g. {pool: blue}", "the selector is empty")
		}
		m.Done()
	default:
		e.subjects = r.readNames(e, v)
		if len(e.subjects) == 0 && v.Problems() == problems {
			v.Errorf("name a member, e.g. S1", "the event is about nobody")
		}
	}
}

// readNames reads one member, a list of them, or for join a mapping of names to what they carry.
func (r reader) readNames(e *event, v yamlnode.Node) (subjects []subject) {
	path := e.node.Path()
	named := make(map[string]bool)
	add := func(name string, node, carries yamlnode.Node) {
		node = node.Named(path)
		specs := []memberSpec{{name: name}}
		if e.kind == join {
			specs[0] = r.readMember(name, node, carries)
		}
		for _, spec := range r.deal(specs[0]) {
			if named[spec.name] {
				node.Errorf("", "%s is named twice", spec.name)
				continue
			}
			named[spec.name] = true
			subjects = append(subjects, subject{name: spec.name, node: node, spec: spec})
		}
	}
	var read func(v yamlnode.Node, nested bool)
	read = func(v yamlnode.Node, nested bool) {
		switch {
		case v.IsMap() && e.kind == join:
			m := v.Map()
			for _, name := range m.Names() {
				add(name, m.Key(name), m.Get(name))
			}
		case v.IsList() && !nested:
			for _, item := range v.List() {
				read(item.Named(path), true)
			}
		default:
			if name := v.String(""); name != "" {
				add(name, v, yamlnode.Absent(v))
			}
		}
	}
	read(v, false)
	return subjects
}
