package topology

import (
	"github.com/streamworker/streamworker/pkg/topology/window"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// aggregator compiles an aggregate of expressions.
func (c *cutter) aggregator(s *aggregateStep, f *aggregateFields) bool {
	if !f.initial.Exists() || !f.text.Exists() {
		return false
	}
	if s.initial = c.expression(f.initial); s.initial == nil {
		return false
	}
	var ok bool
	if s.store.Value, ok = s.initial.format(c.value); !ok || s.initial.typ.shape == null {
		f.initial.ExprErrorf(1, 0, "e.g. 0, 0.0, \"\", [] or {}", "an initial value has to have a type, this gives %s", s.initial.typ)
		return false
	}
	if c.mustNotFail() {
		c.refuse("aggregate", f.at)
	}
	in := scope{key: c.key, value: c.value, acc: true, accOf: s.store.Value, window: c.bounds}
	s.expr = c.next(f.text, in, s.store.Value)
	ok = s.expr != nil
	if f.subtract.Exists() {
		s.subtract = c.next(f.subtract, in, s.store.Value)
		ok = ok && s.subtract != nil
	}
	in.joined, in.other = true, s.store.Value
	switch sessions := f.window.Exists() && s.store.Window != nil && s.store.Window.Kind == window.Session; {
	case f.merge.Exists():
		s.merge = c.next(f.merge, in, s.store.Value)
		ok = ok && s.merge != nil
	case sessions:
		f.at.Errorf("merge: acc + other", "merge is missing: two sessions may become one")
		return false
	}
	c.nullable = true
	return ok
}

// next compiles an expression that gives the next value of an aggregate; nil if it is wrong.
func (c *cutter) next(n yamlnode.Node, in scope, want Format) *expression {
	e := compile(n, in)
	if e == nil {
		return nil
	}
	c.note(e)
	if have, ok := e.format(want); !ok || fitOf(have, want) == misfits {
		n.ExprErrorf(1, 0, "give the type of the initial value", "the initial value is %s, but this gives %s", want, e.typ)
		return nil
	}
	return e
}

// ranking compiles a top_n.
func (c *cutter) ranking(s *aggregateStep, f *aggregateFields) bool {
	s.store.Value = JSON
	s.most = int(f.most.Int(0, 1, 10_000))
	if !f.by.Exists() || s.most == 0 {
		return false
	}
	ok := true
	for _, one := range []struct {
		n yamlnode.Node
		e **expression
	}{{f.by, &s.by}, {f.text, &s.value}, {f.id, &s.id}} {
		if one.n.Exists() {
			*one.e = c.expression(one.n)
			ok = ok && *one.e != nil
		}
	}
	if ok && s.by.typ.shape != single {
		f.by.ExprErrorf(1, 0, "give a number or text", "a ranking by %s makes no sense", s.by.typ)
		ok = false
	}
	if ok && c.mustNotFail() {
		c.refuse("top_n", f.at)
	}
	return ok
}
