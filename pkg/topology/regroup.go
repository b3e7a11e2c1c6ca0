package topology

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// regroupStep sends the changes of a table's rows to the tasks of their groups: to that of the old row what is to be taken
// away, and to that of the new one what is to be added; both in one, if it is the same group.
type regroupStep struct {
	topic  string
	key    *expression
	format Format // of the key
	value  Format // of the rows
}

func (s *regroupStep) String() string { return "regroup by " + s.key.text + " to " + s.topic }

func (s *regroupStep) start(c *chain, _ operator) operator { return &regroupOperator{s, c.p} }

type regroupOperator struct {
	*regroupStep
	p *Processor
}

func (o *regroupOperator) process(m *message) error {
	was, old, err := o.group(m, m.old)
	if err != nil {
		return err
	}
	now, value, err := o.group(m, m.value)
	if err != nil {
		return err
	}
	if was != nil && now != nil && bytes.Equal(was, now) {
		return o.p.write(m, o.topic, -1, now, appendChange(nil, value, old))
	}
	if was != nil {
		if err := o.p.write(m, o.topic, -1, was, appendChange(nil, nil, old)); err != nil {
			return err
		}
	}
	if now != nil {
		return o.p.write(m, o.topic, -1, now, appendChange(nil, value, nil))
	}
	return nil
}

// group is the key of a row's group and the row's bytes; nil if it is in none.
func (o *regroupOperator) group(m *message, row datum) (key, value []byte, err error) {
	if row.null {
		return nil, nil, nil
	}
	was := m.value
	m.value = row
	d, err := o.p.eval.datum(o.key, m, o.format)
	m.value = was
	if err := errors.Join(err, row.encode(o.value, &o.p.slabs)); err != nil {
		return nil, nil, fault{err}
	}
	if err := d.encode(o.format, &o.p.slabs); err != nil {
		return nil, nil, fault{err}
	}
	if d.null {
		o.p.NullKeys++
	}
	return d.raw, row.raw, nil
}

// appendChange appends a row's new and old value, each with its length and 1; 0: there is none.
func appendChange(b, value, old []byte) []byte {
	for _, v := range [][]byte{value, old} {
		if v == nil {
			b = binary.AppendUvarint(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(v))+1), v...)
	}
	return b
}

func parseChange(b []byte) (value, old []byte, ok bool) {
	for _, v := range []*[]byte{&value, &old} {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used)+1 {
			return nil, nil, false
		}
		if b = b[used:]; n > 0 {
			*v, b = b[:n-1:n-1], b[n-1:]
		}
	}
	return value, old, len(b) == 0
}

// regroupedStep aggregates the rows of a table by group: what a row was is taken away again.
type regroupedStep struct{ aggregateStep }

func (s *regroupedStep) String() string { return s.aggregateStep.String() + " of rows" }

func (s *regroupedStep) start(c *chain, next operator) operator {
	o := &regroupedOperator{take: s.taking}
	o.foldOperator = foldOperator{row: c.row(&s.store), folding: newFolding(c, &s.aggregateStep), old: c.seg.old, next: next}
	return o
}

// taking is the value without what a message has brought.
func (s *regroupedStep) taking(f *folding, m *message, acc, v *datum) (datum, error) {
	switch {
	case s.name == "count":
		return intDatum(acc.int() - 1), nil
	case s.name == "sum" && s.store.Value == Float:
		return floatDatum(acc.float() - v.float()), nil
	case s.name == "sum":
		a, b := acc.int(), v.int()
		if d := a - b; (a^b)&(a^d) >= 0 {
			return intDatum(d), nil
		}
		return datum{}, fmt.Errorf("difference of %d and %d does not fit 64 bits", a, b)
	default:
		return f.eval(s.subtract, m, acc)
	}
}

type regroupedOperator struct {
	foldOperator
	take func(f *folding, m *message, acc, v *datum) (datum, error)
}

func (o *regroupedOperator) process(m *message) error {
	value, old, ok := parseChange(m.value.raw)
	if m.key.null || !ok {
		return fault{fmt.Errorf("%d bytes are no change of a row", len(m.value.raw))}
	}
	row, ok, err := o.get(m)
	if err != nil {
		return err
	}
	acc, err := o.spec.parse(row, ok, &o.row.p.slabs)
	if err != nil {
		return err
	}
	if ok {
		m.ts = max(m.ts, acc.ts)
	}
	if o.old {
		m.old = acc.value
	}
	if old != nil && ok {
		if err := o.apply(m, &acc.value, old, func(v *datum) (datum, error) {
			d, err := o.take(o.folding, m, &acc.value, v)
			return d, blamed(err)
		}); err != nil {
			return err
		}
	}
	if value != nil {
		if err := o.apply(m, &acc.value, value, func(v *datum) (datum, error) { return o.folding.next(m, &acc.value, v) }); err != nil {
			return err
		}
	}
	return o.set(m, acc.value)
}

// apply changes acc by what a row brings.
func (o *regroupedOperator) apply(m *message, acc *datum, row []byte, change func(v *datum) (datum, error)) error {
	var err error
	if m.value, err = decodeDatum(o.step.input, row, false); err != nil {
		return fault{err}
	}
	v, some, err := o.brings(m)
	if err != nil || !some {
		return err
	}
	*acc, err = change(&v)
	return err
}
