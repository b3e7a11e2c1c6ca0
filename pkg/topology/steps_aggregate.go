package topology

import (
	"fmt"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// aggregateNames are the steps that fold the records of a key into one value.
var aggregateNames = []string{"count", "sum", "min", "max", "reduce", "aggregate", "collect", "count_distinct", "top_n", "first", "last"}

func isAggregate(name string) bool { return slices.Contains(aggregateNames, name) }

// aggregateFields are what an aggregate says.
type aggregateFields struct {
	at, store, emit, window  yamlnode.Node
	text                     yamlnode.Node // value, expr or add
	initial, subtract, merge yamlnode.Node
	by, id, most, ttl        yamlnode.Node
}

// aggregate adds an aggregate, behind a repartition topic if the key changed before.
func (c *cutter) aggregate(name string, arg, at yamlnode.Node) {
	if !c.checkUnwindowed(at) {
		return
	}
	none := yamlnode.Absent(arg)
	f := aggregateFields{at: at, store: none, emit: none, window: none, text: none, initial: none, subtract: none, merge: none, by: none, id: none, most: none, ttl: none}
	switch {
	case arg.IsMap():
		f.read(name, arg.Map())
	case name == "aggregate":
		at.Errorf("aggregate: {initial: '0', add: acc + value}", "want an initial value, and what is added to it")
		return
	case name == "top_n":
		at.Errorf("top_n: {n: 10, by: value.amount}", "want what to rank by, and how many to keep")
		return
	case arg.Exists() && name == "count":
		arg.Errorf("write count: {store: NAME}, or - count alone", "count takes no expression")
		return
	default:
		f.text = arg
	}
	if f.subtract.Exists() && c.regroup == nil {
		f.subtract.Errorf("leave it out", "only an aggregate of a table's rows takes something away")
		c.ok = false
		return
	}
	s := &aggregateStep{name: name, input: c.value}
	mode := f.emit.Enum("update", "update", "commit", "close")
	if mode == "close" && !f.window.Exists() {
		f.emit.Errorf("add a window: {tumbling: 1m}, or take update or commit", "only windows close")
	}
	s.atCommit, s.onClose = mode == "commit", mode == "close"
	s.store.Name = c.storeName(name, f.store)
	s.store.Changelog = ChangelogTopic(c.app, s.store.Name)
	if c.regroup != nil {
		c.aggregateTable(s, &f)
		return
	}
	s.store.Key = c.key
	topic := ""
	if c.keyChanged {
		topic = RepartitionTopic(c.app, s.store.Name)
		mode := passesAll
		if name == "count" {
			mode = passesKeys
		}
		c.repartition(s.store.Name, mode)
	}
	s.store.Window, s.late = c.windowOf(f.window)
	if f.window.Exists() && s.store.Window == nil || !c.checkName(s.store, topic, f.store, at) || !c.result(s, &f) {
		return
	}
	if s.late != nil {
		c.segment.sinks = append(c.segment.sinks, s.late.Sink)
	}
	if f.ttl.Exists() {
		c.addExpiring(s, &s.store, f.ttl, func(chain *chain) *folding { return newFolding(chain, s) })
	} else {
		c.add(s)
	}
	c.aggregated(s)
}

// aggregated notes what follows an aggregate.
func (c *cutter) aggregated(s *aggregateStep) {
	c.segment.stores = append(c.segment.stores, s.store)
	c.value, c.sourceValue = s.out, false
	c.atCommit = c.atCommit || s.atCommit
	c.table = c.entry.table
	if c.rows = nil; c.table && s.store.Window == nil && s.out == s.store.Value {
		c.rows = &s.store
	}
	if s.store.Window != nil {
		c.window, c.bounds = s.store.Window, true
	}
}

// read reads the fields that an aggregate of this name has.
func (f *aggregateFields) read(name string, m *yamlnode.Map) {
	f.store, f.emit, f.window = m.Get("store"), m.Get("emit"), m.Get("window")
	switch name {
	case "count":
	case "reduce":
		f.text, f.subtract = m.Get("expr"), m.Get("subtract")
	case "aggregate":
		f.initial = m.Require("initial", "the value before the first record, e.g. initial: '0'")
		f.text = m.Require("add", "the next value, from acc and value: add: acc + value")
		f.subtract, f.merge = m.Get("subtract"), m.Get("merge")
	case "collect":
		f.text, f.most = m.Get("value"), m.Get("limit")
	case "top_n":
		f.most = m.Require("n", "how many to keep")
		f.by = m.Require("by", "what to rank by: by: value.amount")
		f.text, f.id = m.Get("value"), m.Get("id")
	default:
		f.text = m.Get("value")
	}
	f.ttl = m.Get("ttl")
	m.Done()
}

// result compiles the aggregate's expression and sets the format of its value.
func (c *cutter) result(s *aggregateStep, f *aggregateFields) bool {
	ok := c.fold(s, f)
	if s.folded = s.store.Value; s.name == "collect" || s.name == "count_distinct" {
		s.folded, s.store.Value = s.store.Value, JSON
	}
	if s.out = s.store.Value; s.name == "count_distinct" {
		s.out = Int
	}
	if s.store.Of = s.name; s.folded != s.store.Value {
		s.store.Of += " of " + s.folded.String()
	}
	return ok
}

// fold is result for what the store holds; of collect and count_distinct, for what a message brings.
func (c *cutter) fold(s *aggregateStep, fields *aggregateFields) bool {
	text, at := fields.text, fields.at
	switch s.name {
	case "count":
		s.store.Value = Int
		c.checkFold(s, resultType{format: Int}, at)
		return true
	case "reduce":
		return c.reducer(s, text, at)
	case "aggregate":
		return c.aggregator(s, fields)
	case "top_n":
		return c.ranking(s, fields)
	case "collect":
		s.most = int(fields.most.Int(1000, 1, 1_000_000))
	}
	typ, node := resultType{format: c.value}, at
	if text.Exists() {
		node = text
		if s.value = c.expression(text); s.value == nil {
			return false
		}
		typ = s.value.typ
	}
	f, ok := foldFormat(s.name, typ)
	if !ok && c.ok {
		hint := "give a number or text, e.g. " + s.name + ": len(value)"
		if s.name == "sum" {
			hint = "give a number, e.g. sum: int(value)"
		}
		node.Errorf(hint, "%s of %s makes no sense", s.name, typ)
	}
	s.store.Value = f
	if ok {
		c.checkFold(s, typ, node)
	}
	return ok
}

// foldFormat is the format of a sum, min or max over a type. Of what is known only record by record, a sum is a
// float, so that it has one format.
func foldFormat(name string, t resultType) (Format, bool) {
	switch {
	case name == "first", name == "last", name == "collect", name == "count_distinct":
		return t.format, t.shape != opaque && t.shape != null && (t.format != Bytes || name == "first" || name == "last")
	case t.shape != single:
		return Float, false
	case name == "sum" && t.format == JSON:
		return Float, true
	case name == "sum":
		return t.format, t.format == Int || t.format == Float
	default:
		return t.format, t.format != Bytes
	}
}

func (c *cutter) reducer(s *aggregateStep, text, at yamlnode.Node) bool {
	s.store.Value = c.value
	if !text.Exists() {
		at.Errorf("reduce: {store: ..., expr: ...}; acc is the value so far, value the new one", "the expression is missing")
		return false
	}
	s.expr = compile(text, scope{key: c.key, value: c.value, acc: true, accOf: c.value, window: c.bounds})
	if s.expr == nil {
		return false
	}
	c.note(s.expr)
	c.checkAtCommit(s.expr)
	f, ok := s.expr.format(c.value)
	if ok && c.ok && fitOf(f, c.value) == misfits {
		text.ExprErrorf(1, 0, "give the same type, or change the value by a map before", "the values are %s, but this gives %s", c.value, s.expr.typ)
		return false
	}
	if ok && fitOf(f, c.value) != fits && c.mustNotFail() {
		c.refuse("reduce", text)
	}
	c.checkFold(s, s.expr.typ, at)
	return ok
}

// storeName reads a store's name. The default is the stream's name and the step's, with a number from
// the second such step of the stream on.
func (c *cutter) storeName(step string, node yamlnode.Node) string {
	c.ordinals[step]++
	name := c.name + "-" + step
	if n := c.ordinals[step]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return node.String(name)
}

// checkName reports a name that is taken, or that makes no topic; at is where it stands, or should.
func (b *builder) checkName(s StoreSpec, topic string, node, at yamlnode.Node) bool {
	if !node.Exists() {
		node = at
	}
	if topic == "" {
		topic = s.Changelog
	}
	switch {
	case !legalTopic.MatchString(s.Name):
		node.Errorf("use letters, digits, '.', '_' and '-'", "%q cannot be a store's name: topics are named after it", s.Name)
	case len(topic) > maxTopic:
		node.Errorf("choose a shorter name", "topic %s would have %d characters, Kafka takes %d", topic, len(topic), maxTopic)
	case b.stores[s.Name]:
		node.Errorf("give each store a name of its own: {store: ...}", "a second store is called %q", s.Name)
	default:
		b.stores[s.Name] = true
		return true
	}
	return false
}

// repartition ends the segment with a sink to a repartition topic and starts the next one from it.
func (c *cutter) repartition(name string, mode passing) {
	s := &sinkStep{fromKey: c.key, fromValue: c.value, mode: mode}
	s.Sink = Sink{Topic: RepartitionTopic(c.app, name), Internal: true, Key: Serde{Format: c.key}, Value: Serde{Format: c.value}}
	if mode == passesKeys {
		s.Value.Format = Bytes
	}
	s.topics = []string{s.Topic}
	c.segment.sinks = append(c.segment.sinks, s.Sink)
	c.add(s)
	source := c.source
	source.Topic, source.Internal, source.Start = s.Topic, true, Earliest
	c.source = source
	next := c.newSegment()
	next.source, next.key, next.value = source, s.Key, s.Value
	c.begin(next)
}
