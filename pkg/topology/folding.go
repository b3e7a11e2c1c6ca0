package topology

import (
	"encoding/binary"
	"fmt"
)

// folding makes an aggregate's next value of that so far and of what a message brings.
type folding struct {
	step *aggregateStep
	p    *Processor
	fold func(m *message, acc, v *datum) (datum, error)
}

func newFolding(c *chain, s *aggregateStep) *folding {
	f := &folding{step: s, p: c.p}
	switch s.name {
	case "count":
		f.fold = func(_ *message, acc, _ *datum) (datum, error) { return intDatum(acc.int() + 1), nil }
	case "sum":
		f.fold = sumOf(s.store.Value)
	case "min":
		f.fold = leastOf(s.store.Value, -1)
	case "max":
		f.fold = leastOf(s.store.Value, 1)
	case "reduce":
		f.fold = f.reduce
	}
	return f
}

// brings returns what m brings, and whether that is something. A count counts nulls too, and a reduce takes them.
func (f *folding) brings(m *message) (v datum, some bool, err error) {
	switch {
	case f.step.name == "count":
		return v, true, nil
	case f.step.name == "reduce":
		v = m.value
	case m.value.null:
		return v, false, nil
	case f.step.value != nil:
		v, err = f.p.eval.datum(f.step.value, m, f.step.store.Value)
		return v, err == nil && !v.null, blamed(err)
	default:
		v = m.value
	}
	err = v.convert(f.step.input, f.step.store.Value)
	return v, true, blamed(err)
}

// first is the value after the first message.
func (f *folding) first(v datum) datum {
	if f.step.name == "count" {
		return intDatum(1)
	}
	return v
}

// next is the value after one more; a null acc: there was none.
func (f *folding) next(m *message, acc, v *datum) (datum, error) {
	if acc.null {
		return f.first(*v), nil
	}
	d, err := f.fold(m, acc, v)
	return d, blamed(err)
}

// merge is the value of two windows in one.
func (f *folding) merge(m *message, acc, v *datum) (datum, error) {
	switch {
	case acc.null:
		return *v, nil
	case v.null:
		return *acc, nil
	case f.step.name == "count":
		return intDatum(acc.int() + v.int()), nil
	case f.step.name == "reduce":
		value := m.value
		m.value = *v
		d, err := f.reduce(m, acc, v)
		m.value = value
		return d, blamed(err)
	default:
		d, err := f.fold(m, acc, v)
		return d, blamed(err)
	}
}

func (f *folding) reduce(m *message, acc, _ *datum) (datum, error) {
	result, err := f.p.eval.run(f.step.expr, m, acc)
	if err != nil {
		return datum{}, err
	}
	d, err := unbox(result, f.step.store.Value)
	if err != nil {
		return datum{}, fmt.Errorf("expression %s: %w", f.step.expr.text, err)
	}
	return d, nil
}

// blamed blames the record for an error, if there is one.
func blamed(err error) error {
	if err == nil {
		return nil
	}
	return fault{err}
}

// stored is a value in a store, with its timestamp.
type stored struct {
	value datum // null: there is none
	ts    int64
}

// parse takes the bytes of a row apart. The store's bytes change with the next Put, records keep theirs.
func (s *StoreSpec) parse(row []byte, ok bool, a *slabs) (stored, error) {
	if !ok {
		return stored{value: nullDatum()}, nil
	}
	if len(row) < stampLen {
		return stored{}, s.corrupt(row)
	}
	d := rawDatum(a.copy(row[stampLen:])) // JSON is decoded when something looks into it
	if s.Value != JSON {
		var err error
		if d, err = decodeDatum(s.Value, d.raw, true); err != nil {
			return stored{}, s.corrupt(row)
		}
	}
	return stored{d, int64(binary.BigEndian.Uint64(row))}, nil
}
