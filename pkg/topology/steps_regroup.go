package topology

import "github.com/streamworker/streamworker/pkg/topology/yamlnode"

// tableRekey says by what the rows of a table are grouped; an aggregate has to follow.
func (c *cutter) tableRekey(arg, at yamlnode.Node) {
	e := c.expression(arg)
	if e == nil {
		c.ok = false
		return
	}
	key, ok := e.format(c.key)
	if !ok || e.typ.shape == null {
		arg.Errorf("use a part of the value, e.g. rekey: value.region", "every group would be null")
		c.ok = false
		return
	}
	c.regroup = &regroupStep{key: e, format: key, value: c.value}
	c.regroupAt = at
}

// aggregateTable adds an aggregate of the rows of a table by group.
func (c *cutter) aggregateTable(s *aggregateStep, f *aggregateFields) {
	g := c.regroup
	c.regroup = nil
	switch {
	case s.name != "count" && s.name != "sum" && s.name != "reduce" && s.name != "aggregate":
		f.at.Errorf("take count, sum, or reduce or aggregate with subtract", "%s cannot take a row away again that has changed", s.name)
		c.ok = false
		return
	case (s.name == "reduce" || s.name == "aggregate") && !f.subtract.Exists():
		f.at.Errorf("subtract: acc - value", "subtract is missing: how a row that has changed is taken away again")
		c.ok = false
		return
	case f.ttl.Exists():
		f.ttl.Errorf("give it to the table", "the rows of a group go when those of the table do")
		c.ok = false
		return
	case f.window.Exists():
		f.window.Errorf("aggregate its changes as a stream", "the rows of a table are of no time")
		c.ok = false
		return
	case c.atCommit:
		f.at.Errorf("leave emit: commit out", "at a commit a table's changes do not tell what there was before, which an aggregate of its rows needs")
		c.ok = false
		return
	}
	g.topic = RepartitionTopic(c.app, s.store.Name)
	s.store.Key = g.format
	if !c.checkName(s.store, g.topic, f.store, f.at) {
		c.ok = false
		return
	}
	c.segment.demandOld()
	value, source := c.value, c.source
	c.add(g)
	c.segment.sinks = append(c.segment.sinks, Sink{Topic: g.topic, Internal: true, Key: Serde{Format: g.format}, Value: Serde{Format: Bytes}})
	c.behind(g.topic, source, g.format)
	c.value, c.sourceValue = value, false
	if !c.result(s, f) {
		c.ok = false
		return
	}
	if f.subtract.Exists() && s.subtract == nil { // of a reduce
		if s.subtract = c.next(f.subtract, scope{key: c.key, value: c.value, acc: true, accOf: s.store.Value}, s.store.Value); s.subtract == nil {
			c.ok = false
			return
		}
	}
	r := &regroupedStep{aggregateStep: *s}
	c.add(r)
	c.aggregated(&r.aggregateStep)
}
