package topology

import (
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// from reads where the records come from and starts the first segment.
func (c *cutter) from(node yamlnode.Node) {
	s := c.newSegment()
	c.segment = s
	if !node.Exists() {
		c.ok = false
		return
	}
	if node.IsMap() && slices.ContainsFunc(node.Map().Names(), func(n string) bool { return n == "stream" || n == "streams" || n == "table" }) {
		c.fromFlows(node)
		return
	}
	c.source = Source{Start: Earliest, OnOutOfRange: Fail, OnError: Stop}
	if node.IsMap() {
		m := node.Map()
		c.source.Topic = c.topicName(m.Require("topic", ""))
		s.key, s.value = c.serde(m.Get("key"), use{}), c.serde(m.Get("value"), use{})
		c.source.Start = Start(m.Get("start").Enum(string(Earliest), string(Earliest), string(Latest)))
		c.source.OnOutOfRange = Start(m.Get("on_out_of_range").Enum(string(Fail), string(Fail), string(Earliest), string(Latest)))
		c.source.OnError = Policy(m.Get("on_error").Enum(string(Stop), string(Stop), string(Skip), string(DeadLetter)))
		c.deadLetter(m.Get("dead_letter"))
		m.Done()
	} else {
		c.source.Topic = c.topicName(node)
	}
	s.source = c.source
	if c.source.Topic == "" {
		c.ok = false
		return
	}
	if internalName(c.app, c.source.Topic) {
		node.Errorf("read another topic, or add the steps to the stream that feeds it", "%s is an internal topic of this application", c.source.Topic)
	}
	if first, seen := c.sources[c.source.Topic]; !seen {
		c.sources[c.source.Topic] = c.source
	} else if first != c.source {
		node.Errorf("streams that read one topic run in one task: give both the same start, on_out_of_range, on_error and dead_letter",
			"topic %s is also read by an earlier stream, with other settings", c.source.Topic)
	}
	c.begin(s)
	if c.entry.table {
		c.kept = true
		c.keep(c.store, c.entry.node)
	}
}

func (c *cutter) deadLetter(node yamlnode.Node) {
	if c.source.OnError == DeadLetter {
		c.source.DeadLetterTopic = c.app + "-dead-letter"
	}
	if !node.Exists() {
		return
	}
	if c.source.OnError != DeadLetter {
		node.Errorf("add on_error: dead_letter, or leave it out", "no record goes to a dead letter topic under on_error: %s", c.source.OnError)
		return
	}
	c.source.DeadLetterTopic = c.topicName(node)
	if c.source.DeadLetterTopic == c.source.Topic {
		node.Errorf("name another topic", "bad records would be read again and again: %s is the topic that they come from", c.source.Topic)
	}
}

// fromFlows starts the first segment where other streams or a table end.
func (c *cutter) fromFlows(node yamlnode.Node) {
	m := node.Map()
	var flows []*flow
	add := func(n yamlnode.Node, table bool, branch yamlnode.Node) {
		if f := c.flow(n, table, branch); f != nil {
			flows = append(flows, f)
		} else {
			c.ok = false
		}
	}
	switch names := m.Names(); {
	case slices.Contains(names, "streams"):
		for _, n := range m.Get("streams").List() {
			add(n, false, yamlnode.Absent(n))
		}
	case slices.Contains(names, "table"):
		n := m.Get("table")
		add(n, true, yamlnode.Absent(n))
	default:
		add(m.Get("stream"), false, m.Get("branch"))
	}
	m.Done()
	if !c.ok || len(flows) == 0 {
		c.ok = false
		return
	}
	for _, f := range flows[1:] {
		if (f.window == nil) != (flows[0].window == nil) || f.window != nil && *f.window != *flows[0].window {
			node.Errorf("leave it out of the keys by a rekey: key before", "the keys of %s and %s have not the same windows", flows[0], f)
			c.ok = false
			return
		}
		if f.key != flows[0].key || f.value != flows[0].value {
			node.Errorf("give both the same formats by a map before", "%s has key %s and value %s, %s has key %s and value %s",
				flows[0], flows[0].key, flows[0].value, f, f.key, f.value)
			c.ok = false
			return
		}
	}
	s, p := c.segment, merged(flows)
	p.table = p.table && c.entry.table
	s.follows, s.source, s.key, s.value = flows, p.source, Serde{Format: p.key}, Serde{Format: p.value}
	for _, f := range flows {
		f.taps = append(f.taps, tap{seg: s})
	}
	c.place = p
}

// flow finds what a name stands for: where a stream, one of its branches, or a table ends. It reports a name that stands for
// nothing; nil then, or if what it stands for is wrong itself.
func (c *cutter) flow(n yamlnode.Node, table bool, branch yamlnode.Node) *flow {
	name := n.String("")
	if name == "" {
		if !n.Exists() {
			n.Errorf("", "the name is missing")
		}
		return nil
	}
	kind, other := "stream", "table"
	if table {
		kind, other = other, kind
	}
	e := c.entries[name]
	switch {
	case e == nil:
		var known []string
		for _, one := range c.all {
			if one.table == table && one.name != "" {
				known = append(known, one.name)
			}
		}
		hint := ""
		if near := yamlnode.Nearest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		n.Errorf(hint, "no %s is called %q", kind, name)
		return nil
	case e.table != table:
		n.Errorf("write "+other+": "+name, "%q is a %s", name, other)
		return nil
	}
	c.read(e)
	if e.state == reading {
		n.Errorf("write to a topic and read that, if it is meant", "%s %s takes its own records up", c.entry.kind(), c.name)
		return nil
	}
	if e.global != nil {
		n.Errorf("leave global out, if it is to be a table like others", "a global table can only be joined with streams")
		return nil
	}
	return e.end(n, branch)
}

// end finds the end of the entry that a branch names; at is where the entry is named.
func (e *entry) end(at, branch yamlnode.Node) *flow {
	want := branch.String("")
	var known []string
	for _, f := range e.ends {
		if f.branch == want {
			return f
		}
		known = append(known, f.branch)
	}
	switch {
	case len(e.ends) == 0:
	case want == "":
		at.Errorf("add branch: NAME (one of: "+strings.Join(known, ", ")+")", "%s %s ends in branches", e.kind(), e.name)
	case known[0] == "":
		branch.Errorf("leave branch out", "%s %s has no branches", e.kind(), e.name)
	default:
		branch.Errorf("one of: "+strings.Join(known, ", "), "%s %s has no branch %q", e.kind(), e.name, want)
	}
	return nil
}
