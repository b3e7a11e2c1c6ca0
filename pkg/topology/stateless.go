package topology

// step is a compiled step of a segment: what starts its operator in a chain, and how it is printed.
type step interface {
	start(c *chain, next operator) operator
	String() string
}

type filterStep struct{ cond *expression }

func (s *filterStep) String() string { return "filter " + s.cond.text }
func (s *filterStep) start(c *chain, next operator) operator {
	return &filterOperator{filterStep: s, x: &c.p.eval, next: next}
}

type filterOperator struct {
	*filterStep
	x    *evaluator
	next operator
}

func (o *filterOperator) process(m *message) error {
	pass, err := o.x.truth(o.cond, m)
	if err != nil {
		return fault{err}
	}
	if !pass {
		return nil
	}
	return o.next.process(m)
}

// mapStep sets key, value or both; nil leaves one as it is. It also serves rekey.
type mapStep struct {
	name                   string
	key, value             *expression
	keyFormat, valueFormat Format
}

func (s *mapStep) String() string {
	switch {
	case s.key == nil:
		return s.name + " " + s.value.text
	case s.value == nil:
		return s.name + " " + s.key.text
	default:
		return s.name + " key: " + s.key.text + ", value: " + s.value.text
	}
}

func (s *mapStep) start(c *chain, next operator) operator {
	return &mapOperator{mapStep: s, x: &c.p.eval, next: next}
}

type mapOperator struct {
	*mapStep
	x    *evaluator
	next operator
	made fields // the value, if it is an object
}

func (o *mapOperator) process(m *message) error {
	key, value := m.key, m.value
	var err error
	if o.key != nil {
		if key, err = o.x.datum(o.key, m, o.keyFormat); err != nil {
			return fault{err}
		}
	}
	if o.value != nil && o.valueFormat == JSON && o.made.fill(o.value, m) {
		value = datum{fields: &o.made}
	} else if o.value != nil {
		if value, err = o.x.datum(o.value, m, o.valueFormat); err != nil {
			return fault{err}
		}
	}
	m.key, m.value = key, value
	return o.next.process(m)
}

type flatMapStep struct {
	list   *expression
	format Format
}

func (s *flatMapStep) String() string { return "flat_map " + s.list.text }
func (s *flatMapStep) start(c *chain, next operator) operator {
	return &flatMapOperator{flatMapStep: s, c: c, next: next}
}

type flatMapOperator struct {
	*flatMapStep
	c    *chain
	next operator
}

// process hands on one message per element. What goes wrong with one element is settled here, so that the
// others get through under skip and dead_letter.
func (o *flatMapOperator) process(m *message) error {
	if o.list.fn != nil {
		return o.processFunc(m)
	}
	key, ts := m.key, m.ts
	return o.c.p.eval.each(o.list, m, o.format, func(d datum, err error) error {
		return o.element(m, key, ts, d, err)
	})
}

// processFunc is process with a function, which keeps what it is given where expressions do not.
func (o *flatMapOperator) processFunc(m *message) error {
	key, ts := m.key, m.ts
	return o.c.p.eval.callEach(o.list, m, func(d datum) error { return o.element(m, key, ts, d, nil) })
}

func (o *flatMapOperator) element(m *message, key datum, ts int64, d datum, err error) error {
	before := o.c.p.mark()
	if err != nil {
		return o.c.p.failed(before, fault{err})
	}
	m.key, m.value, m.ts = key, d, ts
	if err := o.next.process(m); err != nil {
		return o.c.p.failed(before, err)
	}
	return nil
}
