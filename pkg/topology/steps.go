package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// cutter reads the steps of one stream in order, knowing the formats of key and value at each, and starts a new
// segment where an aggregate follows a change of key.
type cutter struct {
	*builder
	name       string
	source     Source
	segment    *segment
	key, value Format // here
	keyChanged bool   // since the records were last partitioned by key
	// sourceKey and sourceValue say that they are still what the segment's source has.
	sourceKey, sourceValue bool
	atCommit               bool // an aggregate before emits at commits, and nothing lies between that records are written to
	nullable               bool // the value is an aggregate's, and may be null
	// ok turns false with the first mistake: formats may then be wrong, and what does not fit is not reported.
	ok       bool
	writes   bool           // there is a sink or an aggregate
	idle     *yamlnode.Node // the first step that nothing follows which writes
	ordinals map[string]int // aggregates so far, by name
}

var stepNames = []string{"filter", "map", "flat_map", "rekey", "count", "sum", "min", "max", "reduce", "to"}

// StepNames are the names of all steps.
func StepNames() []string { return slices.Clone(stepNames) }

// begin makes the segment's source what the next step sees.
func (c *cutter) begin(s *segment) {
	c.segment, c.key, c.value = s, s.key, s.value
	c.sourceKey, c.sourceValue, c.keyChanged, c.atCommit = true, true, false, false
}

func (c *cutter) step(node yamlnode.Node, index int) {
	place := fmt.Sprintf("stream %s, step %d", c.name, index+1)
	node = node.Named(place)
	name, arg, at := splitStep(node)
	if name == "" {
		c.ok = false
		return
	}
	at, arg = at.Named(place+", "+name), arg.Named(place+", "+name)
	before := node.Problems()
	switch name {
	case "filter":
		c.filter(arg)
	case "map":
		c.mapBoth(arg)
	case "flat_map":
		c.flatMap(arg)
	case "rekey":
		c.rekey(arg)
	case "to":
		c.to(arg, at)
	case "count", "sum", "min", "max", "reduce":
		c.aggregate(name, arg, at)
	default:
		hint := "steps: " + strings.Join(stepNames, ", ")
		if near := yamlnode.Nearest(name, stepNames); near != "" {
			hint = "did you mean " + near + "? (" + hint + ")"
		}
		at.Named(place).Errorf(hint, "no step is called %q", name)
	}
	if name != "to" && name != "filter" { // which change no format
		c.ok = c.ok && node.Problems() == before
	}
	if name == "to" || isAggregate(name) {
		c.writes, c.idle = true, nil
	} else if c.idle == nil {
		c.idle = &at
	}
}

func isAggregate(name string) bool {
	switch name {
	case "count", "sum", "min", "max", "reduce":
		return true
	default:
		return false
	}
}

// splitStep takes a step apart into its name, its argument and where the name stands.
func splitStep(node yamlnode.Node) (name string, arg, at yamlnode.Node) {
	if text, ok := node.Text(); ok {
		return text, yamlnode.Absent(node), node
	}
	const hint = "write one step an item, e.g. - filter: value != \"\""
	if !node.IsMap() {
		node.Errorf(hint, "want a step")
		return "", node, node
	}
	m := node.Map()
	if names := m.Names(); len(names) != 1 {
		node.Errorf(hint, "one step has the fields %s", strings.Join(names, ", "))
		return "", node, node
	}
	name = m.Names()[0]
	return name, m.Get(name), m.Key(name)
}

// expression compiles an expression in the scope of this place of the stream.
func (c *cutter) expression(node yamlnode.Node) *expression {
	e := compile(node, scope{key: c.key, value: c.value})
	if e != nil {
		c.note(e)
		c.checkAtCommit(e)
	}
	return e
}

// note remembers what e looks at, so that the source decodes it at once. Passing on is not looking.
func (c *cutter) note(e *expression) {
	if e.text == "key" || e.text == "value" {
		return
	}
	if c.sourceKey {
		c.segment.uses |= e.uses & usesKey
	}
	if c.sourceValue {
		c.segment.uses |= e.uses & usesValue
	}
}

func (c *cutter) add(s step) { c.segment.steps = append(c.segment.steps, s) }

func (c *cutter) filter(arg yamlnode.Node) {
	e := c.expression(arg)
	if e == nil {
		return
	}
	if e.typ.shape != truth && (e.typ != resultType{format: JSON}) {
		arg.ExprErrorf(1, 0, "compare it with something, e.g. value != \"\"", "a filter wants true or false, this gives %s", e.typ)
		return
	}
	if e.typ.shape != truth && c.mustNotFail() {
		c.refuse("filter", arg)
	}
	c.add(&filterStep{cond: e})
}

// format is that of e's result where it becomes a key or a value; was is what it replaces.
func (e *expression) format(was Format) (Format, bool) {
	switch e.typ.shape {
	case truth, list:
		return JSON, true
	case null:
		return was, true
	case opaque:
		e.node.ExprErrorf(1, 0, "give text, a number, a list, an object, true, false or nil", "this gives nothing that can be written")
		return was, false
	default:
		return e.typ.format, true
	}
}

func (c *cutter) setKey(e *expression) bool {
	f, ok := e.format(c.key)
	if ok && e.typ.shape == null {
		e.node.Errorf("use a part of the value, e.g. rekey: value.user", "every key would be null")
		ok = false
	}
	c.key = f
	c.keyChanged = c.keyChanged || e.text != "key"
	c.sourceKey = false
	return ok
}

func (c *cutter) setValue(e *expression) bool {
	f, ok := e.format(c.value)
	c.value, c.sourceValue = f, false
	return ok
}

func (c *cutter) mapBoth(arg yamlnode.Node) {
	s := &mapStep{name: "map"}
	ok := true
	if !arg.IsMap() {
		if s.value = c.expression(arg); s.value == nil {
			return
		}
	} else {
		m := arg.Map()
		key, value := m.Get("key"), m.Get("value")
		m.Done()
		if !key.Exists() && !value.Exists() {
			arg.Errorf("map: {key: ..., value: ...}; put quotes around an expression that starts with {", "want a key, a value or both")
			return
		}
		if key.Exists() {
			s.key = c.expression(key)
			ok = s.key != nil
		}
		if value.Exists() {
			s.value = c.expression(value)
			ok = ok && s.value != nil
		}
	}
	if !ok {
		return
	}
	if s.key != nil {
		ok = c.setKey(s.key)
		s.keyFormat = c.key
	}
	if s.value != nil {
		ok = c.setValue(s.value) && ok
		s.valueFormat = c.value
	}
	if ok {
		c.add(s)
	}
}

func (c *cutter) rekey(arg yamlnode.Node) {
	if e := c.expression(arg); e != nil && c.setKey(e) {
		c.add(&mapStep{name: "rekey", key: e, keyFormat: c.key})
	}
}

func (c *cutter) flatMap(arg yamlnode.Node) {
	e := c.expression(arg)
	if e == nil {
		return
	}
	if e.typ.shape != list && (e.typ != resultType{format: JSON}) {
		arg.ExprErrorf(1, 0, "give a list, e.g. split(value, \" \") or [value]", "a flat_map wants a list, this gives %s", e.typ)
		return
	}
	if e.typ.shape != list && c.mustNotFail() {
		c.refuse("flat_map", arg)
	}
	c.value, c.sourceValue = e.typ.format, false
	c.add(&flatMapStep{list: e, format: c.value})
}

// to adds a sink.
func (c *cutter) to(arg, at yamlnode.Node) {
	topic, key, value := arg, yamlnode.Node{}, yamlnode.Node{}
	s := &sinkStep{fromKey: c.key, fromValue: c.value}
	if arg.IsMap() {
		m := arg.Map()
		topic, key, value = m.Require("topic", "to: {topic: ...}"), m.Get("key"), m.Get("value")
		m.Done()
		s.Key, s.Value = format(key), format(value)
	} else if !arg.Exists() {
		at.Errorf("to: {topic: ...}", "topic is missing")
		return
	}
	if s.Topic = c.topicName(topic); s.Topic == "" {
		return
	}
	c.sinks = append(c.sinks, placedSink{topic: s.Topic, node: topic})
	c.checkFit("key", c.key, s.Key, s.Topic, key, at)
	c.checkFit("value", c.value, s.Value, s.Topic, value, at)
	if c.ok && c.mustNotFail() && (mayFail(c.key, s.Key) || mayFail(c.value, s.Value)) {
		c.refuse("change of format", at)
	}
	c.segment.sinks = append(c.segment.sinks, s.Sink)
	c.add(s)
}

// checkFit reports a key or value that cannot be written as the sink says.
func (c *cutter) checkFit(what string, have, want Format, topic string, node, at yamlnode.Node) {
	if !c.ok || fitOf(have, want) != misfits {
		return
	}
	if !node.Exists() {
		node = at
	}
	hint := fmt.Sprintf("write %s: %s in the sink", what, have)
	if convert := conversion(have, want); convert != "" && what == "value" {
		hint += fmt.Sprintf(", or convert it before: - map: %s(value)", convert)
	} else if convert != "" {
		hint += fmt.Sprintf(", or convert it before: - rekey: %s(key)", convert)
	}
	node.Errorf(hint, "the %s is %s here, but topic %s is written as %s", what, have, topic, want)
}

func conversion(have, want Format) string {
	switch want {
	case String:
		return "string"
	case Int, Float:
		if have != Bytes {
			return want.String()
		}
	default:
	}
	return ""
}

// finish reports a stream, and steps, that come to nothing.
func (c *cutter) finish(steps yamlnode.Node) {
	switch {
	case !steps.Exists() || !c.ok:
	case !c.writes:
		steps.Errorf("add a step to: {topic: ...}, or an aggregate", "the stream writes nothing")
	case c.idle != nil:
		c.idle.Errorf("add a step to: {topic: ...} after it, or remove it", "nothing after this step writes")
	}
}
