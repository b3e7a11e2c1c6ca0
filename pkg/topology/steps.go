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
	place
	entry     *entry
	name      string
	steps     yamlnode.Node
	store     yamlnode.Node // of a table
	ttl       yamlnode.Node
	ended     *yamlnode.Node // the step that ends the stream: a branch
	regroup   *regroupStep   // of a table, until the aggregate that follows
	regroupAt yamlnode.Node
	kept      bool // the store that the entry names is made
	segment   *segment
	segments  []*segment
	// ok turns false with the first mistake: formats may then be wrong, and what does not fit is not reported.
	ok       bool
	writes   bool           // there is a sink or an aggregate
	idle     *yamlnode.Node // the first step that nothing follows which writes
	ordinals map[string]int // aggregates so far, by name
}

var stepNames = slices.Concat([]string{"filter", "map", "flat_map", "rekey"}, aggregateNames, []string{"dedupe", "join", "branch", "log", "to"})

// ofTables are the steps that a table may have.
var ofTables = map[string]bool{"filter": true, "map": true, "rekey": true, "join": true, "log": true, "to": true}

// StepNames are the names of all steps.
func StepNames() []string { return slices.Clone(stepNames) }

// newSegment adds a segment; it is not begun yet.
func (c *cutter) newSegment() *segment {
	s := &segment{stream: c.name, table: c.entry.table, at: position{c.entry.index, len(c.segments)}}
	c.segments = append(c.segments, s)
	return s
}

// begin makes the segment's source what the next step sees.
func (c *cutter) begin(s *segment) {
	c.segment, c.root = s, s
	c.key, c.value = s.key.Format, s.value.Format
	c.sourceKey, c.sourceValue, c.keyChanged, c.atCommit = true, true, false, false
	c.window, c.bounds = nil, false
}

func (c *cutter) step(node yamlnode.Node, index int) {
	place := fmt.Sprintf("%s %s, step %d", c.entry.kind(), c.name, index+1)
	node = node.Named(place)
	name, arg, at := splitStep(node)
	if name == "" {
		c.ok = false
		return
	}
	at, arg = at.Named(place+", "+name), arg.Named(place+", "+name)
	before := node.Problems()
	if c.ended != nil {
		at.Errorf("let a stream take the branch up: from: {stream: "+c.name+", branch: NAME}", "nothing comes after a branch")
		c.ok = false
		return
	}
	if c.regroup != nil && !isAggregate(name) {
		at.Errorf("e.g. - rekey: value.region, - count", "an aggregate has to follow the rekey of a table")
		c.ok, c.regroup = false, nil
		return
	}
	if c.table && c.regroup == nil && !ofTables[name] && slices.Contains(stepNames, name) {
		at.Errorf("read it as a stream: streams: [{name: ..., from: {table: "+c.name+"}, steps: [...]}]", "a table has no step %s", name)
		c.ok = false
		return
	}
	switch name {
	case "filter":
		c.filter(arg)
	case "map":
		c.mapBoth(arg)
	case "flat_map":
		c.flatMap(arg)
	case "rekey":
		if c.table {
			c.tableRekey(arg, at)
		} else {
			c.rekey(arg)
		}
	case "dedupe":
		c.dedupe(arg, at)
	case "join":
		c.join(arg, at)
	case "log":
		c.logs(arg, at)
	case "branch":
		c.branch(arg, at)
	case "to":
		c.to(arg, at)
	default:
		if isAggregate(name) {
			c.aggregate(name, arg, at)
			break
		}
		if custom, ok := arg.Attached().(*Custom); ok {
			c.custom(custom, at)
			break
		}
		hint := "steps: " + strings.Join(stepNames, ", ")
		if near := yamlnode.Nearest(name, stepNames); near != "" {
			hint = "did you mean " + near + "? (" + hint + ")"
		}
		at.Named(place).Errorf(hint, "no step is called %q", name)
	}
	if name != "to" && name != "filter" { // which change no format
		c.ok = c.ok && node.Problems() == before
	}
	if name == "to" || name == "process" || isAggregate(name) {
		c.writes, c.idle = true, nil
	} else if c.idle == nil {
		c.idle = &at
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
	e := compile(node, scope{key: c.key, value: c.value, window: c.bounds})
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
		c.root.uses |= e.uses & usesKey
	}
	switch {
	case !c.sourceValue || e.uses&usesValue == 0:
	case e.native.computed != nil:
		c.root.uses |= usesFields
	default:
		c.root.uses |= usesValue
	}
}

func (c *cutter) add(s step) { c.segment.steps = append(c.segment.steps, s) }

func (c *cutter) filter(arg yamlnode.Node) {
	e := c.condition(arg, "filter")
	switch {
	case e == nil:
	case c.table:
		c.tableFilter(e)
	default:
		c.add(&filterStep{cond: e})
	}
}

// condition compiles an expression that is to be true or false.
func (c *cutter) condition(arg yamlnode.Node, step string) *expression {
	e := c.expression(arg)
	if e == nil {
		return nil
	}
	if e.typ.shape != truth && (e.typ != resultType{format: JSON}) {
		arg.ExprErrorf(1, 0, "compare it with something, e.g. value != \"\"", "a %s wants true or false, this gives %s", step, e.typ)
		return nil
	}
	if e.typ.shape != truth && c.mustNotFail() {
		c.refuse(step, arg)
	}
	return e
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
	c.key, c.window = f, nil
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
	if c.table {
		c.tableMap(arg)
		return
	}
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

// finish reports a stream, and steps, that come to nothing.
func (c *cutter) finish() {
	taken := slices.ContainsFunc(c.entry.ends, func(f *flow) bool { return len(f.taps) > 0 || f.read })
	switch {
	case !c.steps.Exists() || !c.ok:
	case c.ended != nil:
		c.untaken()
	case taken:
	case !c.writes:
		c.steps.Errorf("add a step to: {topic: ...}, or an aggregate", "the stream writes nothing")
	case c.idle != nil:
		c.idle.Errorf("add a step to: {topic: ...} after it, or remove it", "nothing after this step writes")
	}
}

// untaken reports the branches that nobody takes up.
func (c *cutter) untaken() {
	for _, f := range c.entry.ends {
		if len(f.taps) == 0 {
			c.ended.Errorf("take it up: from: {stream: "+c.name+", branch: "+f.branch+"}; records that fit no branch are dropped", "nothing comes out of branch %s", f.branch)
		}
	}
}
