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

// tableFilterStep hands a row's value on while the condition is true for it, and a null when it is not.
type tableFilterStep struct{ cond *expression }

func (s *tableFilterStep) String() string { return "filter " + s.cond.text }

func (s *tableFilterStep) start(c *chain, next operator) operator {
	return &tableFilterOperator{tableFilterStep: s, x: &c.p.eval, old: c.seg.old, next: next}
}

type tableFilterOperator struct {
	*tableFilterStep
	x    *evaluator
	old  bool
	next operator
}

func (o *tableFilterOperator) process(m *message) error {
	value, err := o.passed(m, m.value)
	if err != nil {
		return err
	}
	if o.old {
		old, err := o.passed(m, m.old)
		if err != nil {
			return err
		}
		if m.old = old; value.null && old.null {
			return nil
		}
	}
	m.value = value
	return o.next.process(m)
}

// passed is v if the condition holds for it, else null.
func (o *tableFilterOperator) passed(m *message, v datum) (datum, error) {
	if v.null {
		return v, nil
	}
	value := m.value
	m.value = v
	pass, err := o.x.truth(o.cond, m)
	m.value = value
	if err != nil {
		return v, fault{err}
	}
	if !pass {
		return nullDatum(), nil
	}
	return v, nil
}

// tableMapStep sets the value of rows; that of a deleted one stays null.
type tableMapStep struct {
	value  *expression
	format Format
}

func (s *tableMapStep) String() string { return "map " + s.value.text }

func (s *tableMapStep) start(c *chain, next operator) operator {
	return &tableMapOperator{tableMapStep: s, x: &c.p.eval, old: c.seg.old, next: next}
}

type tableMapOperator struct {
	*tableMapStep
	x    *evaluator
	old  bool
	next operator
}

func (o *tableMapOperator) process(m *message) error {
	value, err := o.mapped(m, m.value)
	if err != nil {
		return err
	}
	if o.old {
		if m.old, err = o.mapped(m, m.old); err != nil {
			return err
		}
	}
	m.value = value
	return o.next.process(m)
}

func (o *tableMapOperator) mapped(m *message, v datum) (datum, error) {
	if v.null {
		return v, nil
	}
	value := m.value
	m.value = v
	v, err := o.x.datum(o.value, m, o.format)
	m.value = value
	if err != nil {
		return v, fault{err}
	}
	return v, nil
}
