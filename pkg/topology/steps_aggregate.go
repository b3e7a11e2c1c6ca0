package topology

import (
	"fmt"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// aggregate adds count, sum, min, max or reduce, behind a repartition topic if the key changed before.
func (c *cutter) aggregate(name string, arg, at yamlnode.Node) {
	s := &aggregateStep{name: name, input: c.value}
	store, text, win := yamlnode.Absent(arg), yamlnode.Absent(arg), yamlnode.Absent(arg)
	if !c.checkUnwindowed(at) {
		return
	}
	switch {
	case arg.IsMap():
		m := arg.Map()
		store = m.Get("store")
		emit := m.Get("emit")
		win = m.Get("window")
		mode := emit.Enum("update", "update", "commit", "close")
		if mode == "close" && !win.Exists() {
			emit.Errorf("add a window: {tumbling: 1m}, or take update or commit", "only windows close")
		}
		s.atCommit, s.onClose = mode == "commit", mode == "close"
		switch name {
		case "count":
		case "reduce":
			text = m.Get("expr")
		default:
			text = m.Get("value")
		}
		m.Done()
	case arg.Exists() && name == "count":
		arg.Errorf("write count: {store: NAME}, or - count alone", "count takes no expression")
		return
	default:
		text = arg
	}
	s.store.Name = c.storeName(name, store)
	s.store.Changelog = ChangelogTopic(c.app, s.store.Name)
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
	s.store.Window, s.late = c.windowOf(win)
	if win.Exists() && s.store.Window == nil || !c.checkName(s.store, topic, store, at) || !c.result(s, text, at) {
		return
	}
	if s.late != nil {
		c.segment.sinks = append(c.segment.sinks, s.late.Sink)
	}
	c.segment.stores = append(c.segment.stores, s.store)
	c.add(s)
	c.value, c.sourceValue = s.store.Value, false
	c.atCommit = c.atCommit || s.atCommit
	c.table = c.entry.table
	if c.rows = nil; c.table && s.store.Window == nil {
		c.rows = &s.store
	}
	if s.store.Window != nil {
		c.window, c.bounds = s.store.Window, true
	}
}

// result compiles the aggregate's expression and sets the format of its value.
func (c *cutter) result(s *aggregateStep, text, at yamlnode.Node) bool {
	switch s.name {
	case "count":
		s.store.Value = Int
		c.checkFold(s, resultType{format: Int}, at)
		return true
	case "reduce":
		return c.reducer(s, text, at)
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
		hint := "give a number, e.g. sum: int(value)"
		if s.name != "sum" {
			hint = "give a number or text, e.g. " + s.name + ": len(value)"
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
	s.expr = compile(text, scope{key: c.key, value: c.value, acc: true, window: c.bounds})
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
	s.Sink = Sink{Topic: RepartitionTopic(c.app, name), Internal: true, Key: c.key, Value: c.value}
	if mode == passesKeys {
		s.Value = Bytes
	}
	c.segment.sinks = append(c.segment.sinks, s.Sink)
	c.add(s)
	source := c.source
	source.Topic, source.Internal, source.Start = s.Topic, true, Earliest
	c.source = source
	next := c.newSegment()
	next.source, next.key, next.value = source, s.Key, s.Value
	c.begin(next)
}
