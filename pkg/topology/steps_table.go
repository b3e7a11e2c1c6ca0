package topology

import (
	"time"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// keep makes the records a table of their last values. at is where a mistake is reported if name does not exist.
func (c *cutter) keep(name, at yamlnode.Node) {
	if !c.checkUnwindowed(at) {
		c.ok = false
		return
	}
	s := &tableStep{}
	s.store = StoreSpec{Name: name.String(c.name), Key: c.key, Value: c.value}
	s.store.Changelog = ChangelogTopic(c.app, s.store.Name)
	topic := ""
	if c.keyChanged {
		topic = RepartitionTopic(c.app, s.store.Name)
		c.repartition(s.store.Name, passesNulls)
	}
	if !c.checkName(s.store, topic, name, at) {
		c.ok = false
		return
	}
	c.segment.stores = append(c.segment.stores, s.store)
	if c.ttl.Exists() {
		c.addExpiring(s, &s.store, c.ttl, nil)
	} else {
		c.add(s)
	}
	c.table, c.rows, c.nullable = true, &s.store, true
	c.writes, c.idle = true, nil
}

// conclude ends the last segment. A table from a stream without an aggregate holds the last value of each key.
func (c *cutter) conclude() {
	if c.regroup != nil {
		c.regroupAt.Errorf("e.g. - rekey: value.region, - count", "an aggregate has to follow the rekey of a table")
		c.ok = false
	}
	if c.entry.table {
		if !c.table && c.ok {
			c.kept = true
			c.keep(c.store, c.entry.node)
		} else if c.store.Exists() && !c.kept {
			c.store.Errorf("name the store where it is made: "+"count: {store: ...}", "the table is made by another store")
		}
	}
	if c.entry.table && c.ttl.Exists() && !c.kept {
		c.ttl.Errorf("name it where the store is made: count: {ttl: ...}", "the table is made by another store")
	}
	for _, s := range c.segments {
		if s.end == nil {
			s.end = &flow{place: c.place, seg: s}
		}
	}
	if c.ok && len(c.entry.ends) == 0 {
		c.entry.ends = []*flow{c.segment.end}
	}
}

// addExpiring adds a step whose rows are deleted when they have not changed for a while.
func (c *cutter) addExpiring(inner step, rows *StoreSpec, ttl yamlnode.Node, result func(*chain) *folding) {
	s := &ttlStep{inner: inner, rows: *rows, after: span(ttl, time.Millisecond), result: result}
	s.index = StoreSpec{Name: rows.Name + "-ttl", Key: rows.Key, Value: Bytes, Layout: Timed}
	s.index.Changelog = ChangelogTopic(c.app, s.index.Name)
	switch {
	case rows.Window != nil:
		ttl.Errorf("a window has grace and retention", "rows of windows go when their window is closed")
		c.ok = false
	case !c.checkName(s.index, "", yamlnode.Absent(ttl), ttl):
		c.ok = false
	}
	if a, ok := inner.(*aggregateStep); ok && a.atCommit {
		ttl.Errorf("leave emit: commit out", "at a commit it would not be known which rows have gone")
		c.ok = false
	}
	c.segment.stores = append(c.segment.stores, s.index)
	c.add(s)
}

// tableFilter adds a filter of a table's rows.
func (c *cutter) tableFilter(cond *expression) {
	c.add(&rowStep{expr: cond, filter: true})
	c.rows, c.nullable = nil, true
}

// tableMap adds a map of a table's rows.
func (c *cutter) tableMap(arg yamlnode.Node) {
	if arg.IsMap() {
		arg.Errorf("map: EXPRESSION sets the value; put quotes around an expression that starts with {", "a row of a table keeps its key")
		return
	}
	e := c.expression(arg)
	if e == nil || !c.setValue(e) {
		return
	}
	c.add(&rowStep{expr: e, format: c.value})
	c.rows, c.nullable = nil, true
}
