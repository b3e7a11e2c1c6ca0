package topology

import "fmt"

// joinKind says which rows or records give a result though they have no counterpart.
type joinKind uint8

const (
	inner joinKind = iota
	left           // those of the stream or table that has the step
	outer          // those of the other one too
)

var joinKinds = []string{"inner", "left", "outer"}

// joined is the value of a join.
type joined struct {
	kind   joinKind
	value  *expression
	format Format
}

func (j *joined) describe(with string) string {
	text := "join " + with
	if j.kind != inner {
		text = joinKinds[j.kind] + " " + text
	}
	return text + ": " + j.value.text
}

// has tells whether there is a result, given which of the two values are there.
func (j *joined) has(value, other bool) bool {
	switch j.kind {
	case inner:
		return value && other
	case left:
		return value
	default:
		return value || other
	}
}

// combine is the result for two values, null if there is none.
func (j *joined) combine(x *evaluator, m *message, value, other datum) (datum, error) {
	if !j.has(!value.null, !other.null) {
		return nullDatum(), nil
	}
	wasValue, wasOther := m.value, m.other
	m.value, m.other = value, other
	d, err := x.datum(j.value, m, j.format)
	m.value, m.other = wasValue, wasOther
	return d, blamed(err)
}

// lookupStep joins each record of a stream with what a table has for its key at that moment.
type lookupStep struct {
	joined
	table *flow
	rows  StoreSpec
}

func (s *lookupStep) String() string { return s.describe("table " + s.table.seg.stream) }

func (s *lookupStep) start(c *chain, next operator) operator {
	return &lookupOperator{lookupStep: s, row: c.row(&s.rows), next: next}
}

type lookupOperator struct {
	*lookupStep
	row  row
	next operator
}

func (o *lookupOperator) process(m *message) error {
	p := o.row.p
	if m.value.null {
		p.NullValues++
		return nil
	}
	other := nullDatum()
	switch {
	case !m.key.null:
		found, err := o.row.find(m)
		if err != nil {
			return err
		}
		other = found.value
	case o.kind == inner:
		p.NullKeys++
		return nil
	}
	if !o.has(true, !other.null) {
		return nil
	}
	value, err := o.combine(&p.eval, m, m.value, other)
	if err != nil {
		return err
	}
	m.value = value
	return o.next.process(m)
}

// find reads what the store has for m's key.
func (r *row) find(m *message) (stored, error) {
	if err := m.key.encode(r.spec.Key, &r.p.slabs); err != nil {
		return stored{}, fault{fmt.Errorf("key: %w", err)}
	}
	bytes, ok, err := r.store.Get(m.key.raw)
	if err != nil {
		return stored{}, fmt.Errorf("store %s: %w", r.spec.Name, err)
	}
	return r.spec.parse(bytes, ok, &r.p.slabs)
}

// tableJoinStep joins two tables by their keys: a change of one is joined with the row that the other has.
type tableJoinStep struct {
	joined
	with        *flow
	rows, other StoreSpec // of the two tables
}

func (s *tableJoinStep) String() string { return s.describe("table " + s.with.seg.stream) }
func (s *tableJoinStep) joins() *flow   { return s.with }

func (s *tableJoinStep) start(c *chain, next operator) operator {
	c.others[s] = &tableJoinOperator{tableJoinStep: s, mine: false, its: c.row(&s.rows), old: c.seg.old, next: next}
	return &tableJoinOperator{tableJoinStep: s, mine: true, its: c.row(&s.other), old: c.seg.old, next: next}
}

// tableJoinOperator takes the changes of one of the tables; its is the other one.
type tableJoinOperator struct {
	*tableJoinStep
	mine bool // the changes are those of the table that has the step
	its  row
	old  bool
	next operator
}

func (o *tableJoinOperator) process(m *message) error {
	found, err := o.its.find(m)
	if err != nil {
		return err
	}
	there, gone := !found.value.null, m.value.null && m.old.null
	if !there && (gone || o.kind == inner || o.kind == left && !o.mine) {
		return nil // there was no result, and there is none
	}
	was, now := m.old, m.value
	if m.value, err = o.of(m, now, found.value); err != nil {
		return err
	}
	if o.old {
		if m.old, err = o.of(m, was, found.value); err != nil {
			return err
		}
	}
	if there {
		m.ts = max(m.ts, found.ts)
	}
	return o.next.process(m)
}

// of is the result for a value of the changed table and one of the other.
func (o *tableJoinOperator) of(m *message, changed, its datum) (datum, error) {
	if o.mine {
		return o.combine(&o.its.p.eval, m, changed, its)
	}
	return o.combine(&o.its.p.eval, m, its, changed)
}
