package topology

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// joinFields are what a join says.
type joinFields struct {
	table, stream, branch, kind, value, key, on, within, before, after, grace, store yamlnode.Node
	older, younger, patience                                                         int64 // ms, as within, before, after and grace say
}

// join adds a join with a table or with another stream.
func (c *cutter) join(arg, at yamlnode.Node) {
	const example = "join: {table: NAME, value: EXPRESSION} or {stream: NAME, within: 10s, value: EXPRESSION}; value and other are what is joined"
	if !arg.IsMap() {
		at.Errorf(example, "want what to join with")
		return
	}
	m := arg.Map()
	f := joinFields{
		table: m.Get("table"), stream: m.Get("stream"), branch: m.Get("branch"), kind: m.Get("type"), key: m.Get("key"), on: m.Get("on"),
		value:  m.Require("value", "say what the result is: value is this side's, other the other's, e.g. value: '{\"order\": value, \"customer\": other}'"),
		within: m.Get("within"), before: m.Get("before"), after: m.Get("after"), grace: m.Get("grace"), store: m.Get("store"),
	}
	m.Done()
	f.older = span(f.within, 0)
	f.younger = f.older
	if f.before.Exists() {
		f.older = span(f.before, 0)
	}
	if f.after.Exists() {
		f.younger = span(f.after, 0)
	}
	f.patience = span(f.grace, 0)
	j := joined{kind: joinKind(slices.Index(joinKinds, f.kind.Enum(joinKinds[inner], joinKinds...)))}
	if f.stream.Exists() == f.table.Exists() {
		arg.Errorf(example, "want a table or a stream to join with")
		return
	}
	if f.table.Exists() {
		for _, n := range []yamlnode.Node{f.branch, f.within, f.before, f.after, f.grace} {
			if n.Exists() {
				n.Errorf("leave it out", "a join with a table has none")
			}
		}
	}
	if c.table && f.stream.Exists() {
		f.stream.Errorf("join it as a stream: streams: [{name: ..., from: {table: "+c.name+"}, steps: [...]}]", "a table cannot be joined with a stream")
		return
	}
	if g := c.globalNamed(f.table); g != nil {
		c.joinGlobal(j, g, &f)
		return
	}
	if f.key.Exists() {
		f.key.Errorf("change the key before: - rekey: ...", "only a join with a global table looks for another key")
		return
	}
	if f.on.Exists() && !c.table {
		f.on.Errorf("rekey before: - rekey: ...", "only a table is joined by a foreign key")
		return
	}
	n := f.table
	if f.stream.Exists() {
		n = f.stream
	}
	with := c.flow(n, f.table.Exists(), f.branch)
	switch {
	case with == nil, !c.ok, !f.value.Exists(), !c.checkUnwindowed(at):
		c.ok = false
	case with.window != nil:
		n.Errorf("leave the window out by a rekey: key; of a table, in a stream that reads it", "the keys of %s have a window", with)
	case f.on.Exists():
		c.joinForeign(j, with, &f)
	case with.key != c.key:
		n.Errorf("give both keys the same format by a rekey before", "the key is %s here, that of %s is %s", c.key, with, with.key)
	case f.table.Exists():
		c.joinTable(j, with, &f)
	default:
		c.joinStream(j, with, &f, at)
	}
}

// joinedValue compiles the value of a join, with what is known of the other side.
func (c *cutter) joinedValue(j *joined, value yamlnode.Node, other Format) bool {
	j.value = compile(value, scope{key: c.key, value: c.value, joined: true, other: other, left: j.kind == outer, right: j.kind != inner, window: c.bounds})
	if j.value == nil {
		c.ok = false
		return false
	}
	c.note(j.value)
	c.checkAtCommit(j.value)
	ok := c.setValue(j.value)
	j.format = c.value
	return ok
}

// joinTable joins a stream, or another table, with a table.
func (c *cutter) joinTable(j joined, with *flow, f *joinFields) {
	value := f.value
	if !c.table && j.kind == outer {
		f.kind.Errorf("a table's row alone is no record: take inner or left", "a stream cannot be joined with a table in this way")
		return
	}
	c.materialize(with, value)
	if !c.table {
		if c.keyChanged {
			mode := passesAll
			if j.kind == left {
				mode = passesValues
			}
			c.repartition(c.joinName(), mode)
		}
		s := &lookupStep{joined: j, table: with, rows: *with.rows}
		if !c.joinedValue(&s.joined, value, with.value) {
			return
		}
		c.segment.joins = append(c.segment.joins, with)
		c.add(s)
		return
	}
	if c.atCommit || with.atCommit {
		value.Errorf("leave emit: commit out", "at a commit a table's changes do not tell what there was before, which a join of tables needs")
		c.ok = false
		return
	}
	s := &tableJoinStep{with: with, other: *with.rows, joined: j}
	s.rows = c.materialized(value)
	c.segment.demandOld()
	with.seg.demandOld()
	if !c.joinedValue(&s.joined, value, with.value) {
		return
	}
	c.segment.joins = append(c.segment.joins, with)
	with.taps = append(with.taps, tap{seg: c.segment, step: s})
	c.add(s)
	c.rows, c.nullable = nil, true
}

// joinName is the name of a join, for its stores and repartition topics.
func (c *cutter) joinName() string { return c.storeName("join", yamlnode.Absent(c.entry.node)) }

// materialize makes sure that the rows at the end of a table are in a store.
func (c *cutter) materialize(f *flow, at yamlnode.Node) {
	f.read = true
	if f.rows == nil {
		f.keepRows(c.builder, f.seg, at)
	}
}

// materialized makes sure that the rows of this table are in a store here, and returns that.
func (c *cutter) materialized(at yamlnode.Node) StoreSpec {
	if c.rows == nil {
		c.keepRows(c.builder, c.segment, at)
	}
	return *c.rows
}

// keepRows adds a step that keeps the rows in a store of their own.
func (p *place) keepRows(b *builder, seg *segment, at yamlnode.Node) {
	s := &tableStep{store: StoreSpec{Name: seg.stream + "-rows", Key: p.key, Value: p.value}}
	s.store.Changelog = ChangelogTopic(b.app, s.store.Name)
	b.checkName(s.store, "", yamlnode.Absent(at), at)
	seg.steps, seg.stores = append(seg.steps, s), append(seg.stores, s.store)
	p.rows = &s.store
}

// demandOld makes a table's changes tell what there was before.
func (s *segment) demandOld() {
	if s.old {
		return
	}
	s.old = true
	for _, f := range s.follows {
		if f.table {
			f.seg.demandOld()
		}
	}
}
