package topology

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// global reads a table that every instance has whole.
func (c *cutter) global(from yamlnode.Node) {
	g := &Global{Name: c.name}
	if from.IsMap() {
		m := from.Map()
		g.Topic = c.topicName(m.Require("topic", "a global table comes from a topic"))
		g.Key = c.serde(m.Get("key"), use{topic: g.Topic, part: "key"})
		g.Value = c.serde(m.Get("value"), use{topic: g.Topic, part: "value"})
		m.Done()
	} else {
		g.Topic = c.topicName(from)
	}
	if c.steps.Exists() {
		c.steps.Errorf("do it where it is joined", "a global table has no steps")
		c.ok = false
	}
	if c.store.Exists() {
		c.store.Errorf("leave it out", "a global table is in memory, and has no store")
	}
	if g.Topic != "" && internalName(c.app, g.Topic) {
		from.Errorf("read another topic", "%s is an internal topic of this application", g.Topic)
	}
	if c.ok = c.ok && g.Topic != ""; c.ok {
		c.entry.global = g
		c.globals = append(c.globals, g)
	}
}

// joinGlobal joins a stream with a global table.
func (c *cutter) joinGlobal(j joined, g *Global, f *joinFields) {
	switch {
	case c.table:
		f.table.Errorf("join its changes: streams: [{name: ..., from: {table: "+c.name+"}, steps: [...]}]", "a table cannot be joined with a global one")
		return
	case j.kind == outer:
		f.kind.Errorf("a table's row alone is no record: take inner or left", "a stream cannot be joined with a table in this way")
		return
	}
	s := &globalJoinStep{joined: j, table: g}
	if !f.key.Exists() {
		f.table.Errorf("e.g. key: value.currency, or key: key", "key is missing: which row of the global table to join with")
		return
	}
	if s.key = c.expression(f.key); s.key == nil {
		c.ok = false
		return
	}
	if have, ok := s.key.format(g.Key.Format); !ok || fitOf(have, g.Key.Format) == misfits {
		f.key.ExprErrorf(1, 0, "convert with string(), int() or float()", "the key of global table %s is %s, but this gives %s", g.Name, g.Key, s.key.typ)
		c.ok = false
		return
	}
	if !c.joinedValue(&s.joined, f.value, g.Value.Format) {
		return
	}
	if !slices.Contains(c.segment.globals, g) {
		c.segment.globals = append(c.segment.globals, g)
	}
	c.add(s)
}

// globalNamed finds a global table; nil: it is something else.
func (c *cutter) globalNamed(n yamlnode.Node) *Global {
	if !n.Exists() {
		return nil
	}
	name, _ := n.Text()
	e := c.entries[name]
	if e == nil {
		return nil
	}
	if e.state == unread {
		c.read(e)
	}
	return e.global
}
