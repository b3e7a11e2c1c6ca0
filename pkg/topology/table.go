package topology

import (
	"fmt"
)

// tableStep keeps the last value of each key, and hands each change on. A null deletes the row.
type tableStep struct {
	store StoreSpec
}

func (s *tableStep) String() string {
	return fmt.Sprintf("table (store %s: key %s, value %s)", s.store.Name, s.store.Key, s.store.Value)
}

func (s *tableStep) keeps() []StoreSpec { return []StoreSpec{s.store} }

func (s *tableStep) start(c *chain, next operator) operator {
	return &tableOperator{row: c.row(&s.store), old: c.seg.old, next: next}
}

type tableOperator struct {
	row
	old  bool // what follows wants to know what was there before
	next operator
}

// process takes every change as it comes, whatever its timestamp: a table is as of its topic's order.
func (o *tableOperator) process(m *message) error {
	if m.key.null {
		o.p.NullKeys++
		return nil
	}
	if err := m.value.encode(o.spec.Value, &o.p.slabs); err != nil {
		return fault{err}
	}
	stored, ok, err := o.get(m)
	if err != nil {
		return err
	}
	if o.old {
		if m.old, err = o.decode(stored, ok); err != nil {
			return err
		}
	}
	if m.value.null {
		o.delete(m)
	} else {
		if err := o.write(m, m.value.raw); err != nil {
			return err
		}
	}
	return o.next.process(m)
}

// rowStep makes something of a row's value: a filter hands it on while the condition is true for it, and a null when it is not; a
// map sets it. That of a deleted row stays null.
type rowStep struct {
	expr   *expression
	filter bool
	format Format // of a map's result
}

func (s *rowStep) String() string {
	if s.filter {
		return "filter " + s.expr.text
	}
	return "map " + s.expr.text
}

func (s *rowStep) start(c *chain, next operator) operator {
	return &rowOperator{rowStep: s, x: &c.p.eval, old: c.seg.old, next: next}
}

type rowOperator struct {
	*rowStep
	x    *evaluator
	old  bool
	next operator
}

func (o *rowOperator) process(m *message) error {
	value, err := o.of(m, m.value)
	if err != nil {
		return err
	}
	if o.old {
		if m.old, err = o.of(m, m.old); err != nil {
			return err
		}
		if o.filter && value.null && m.old.null {
			return nil
		}
	}
	m.value = value
	return o.next.process(m)
}

// of is what becomes of one value of the row.
func (o *rowOperator) of(m *message, v datum) (out datum, err error) {
	if v.null {
		return v, nil
	}
	value := m.value
	m.value = v
	if out = v; !o.filter {
		out, err = o.x.datum(o.expr, m, o.format)
	} else if pass, failed := o.x.truth(o.expr, m); !pass {
		out, err = nullDatum(), failed
	}
	m.value = value
	if err != nil {
		return v, fault{err}
	}
	return out, nil
}
