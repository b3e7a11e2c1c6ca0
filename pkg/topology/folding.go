package topology

import (
	"encoding/binary"
	"fmt"
)

// folding makes an aggregate's next value of that so far and of what a message brings.
type folding struct {
	step *aggregateStep
	p    *Processor
	// start is the value after the first message; fold after one more, acc is not null; join that of two windows in one.
	start func(m *message, v *datum) (datum, error)
	fold  func(m *message, acc, v *datum) (datum, error)
	join  func(m *message, acc, v *datum) (datum, error)
	// result is what is sent on for a value; nil: the value itself.
	result func(datum) (datum, error)
}

func newFolding(c *chain, s *aggregateStep) *folding {
	f := &folding{step: s, p: c.p}
	f.start = func(_ *message, v *datum) (datum, error) { return *v, nil }
	switch s.name {
	case "count":
		f.start = func(*message, *datum) (datum, error) { return intDatum(1), nil }
		f.fold = func(_ *message, acc, _ *datum) (datum, error) { return intDatum(acc.int() + 1), nil }
		f.join = func(_ *message, acc, v *datum) (datum, error) { return intDatum(acc.int() + v.int()), nil }
	case "sum":
		f.fold = sumOf(s.store.Value)
	case "min":
		f.fold = leastOf(s.store.Value, -1)
	case "max":
		f.fold = leastOf(s.store.Value, 1)
	case "first":
		f.fold = func(_ *message, acc, _ *datum) (datum, error) { return *acc, nil }
	case "last":
		f.fold = func(_ *message, _, v *datum) (datum, error) { return *v, nil }
	case "reduce":
		f.fold = func(m *message, acc, _ *datum) (datum, error) { return f.eval(s.expr, m, acc) }
		f.join = func(m *message, acc, v *datum) (datum, error) {
			value := m.value
			m.value = *v
			d, err := f.eval(s.expr, m, acc)
			m.value = value
			return d, err
		}
	case "aggregate":
		f.fold = func(m *message, acc, _ *datum) (datum, error) { return f.eval(s.expr, m, acc) }
		f.start = func(m *message, v *datum) (datum, error) {
			acc, err := f.eval(s.initial, m, nil)
			if err != nil {
				return acc, err
			}
			return f.fold(m, &acc, v)
		}
		f.join = func(m *message, acc, v *datum) (datum, error) {
			m.other = *v
			return f.eval(s.merge, m, acc)
		}
	default:
		f.list()
	}
	if f.join == nil {
		f.join = f.fold
	}
	return f
}

// brings returns what m brings, and whether that is something. A count counts nulls too, and a reduce takes them.
func (f *folding) brings(m *message) (v datum, some bool, err error) {
	s := f.step
	switch {
	case s.name == "count", s.name == "aggregate":
		return v, true, nil
	case s.name == "reduce":
		v = m.value
	case m.value.null:
		return v, false, nil
	case s.name == "top_n":
		return f.ranked(m)
	case s.value != nil:
		v, err = f.p.eval.datum(s.value, m, s.folded)
		return v, err == nil && !v.null, blamed(err)
	default:
		v = m.value
	}
	err = v.convert(s.input, s.folded)
	return v, true, blamed(err)
}

// next is the value after one more; a null acc: there was none.
func (f *folding) next(m *message, acc, v *datum) (datum, error) {
	if acc.null {
		d, err := f.start(m, v)
		return d, blamed(err)
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
	default:
		d, err := f.join(m, acc, v)
		return d, blamed(err)
	}
}

// of is what is sent on for a value.
func (f *folding) of(d datum) (datum, error) {
	if f.result == nil || d.null {
		return d, nil
	}
	d, err := f.result(d)
	return d, blamed(err)
}

// eval evaluates an expression over m and the value so far.
func (f *folding) eval(e *expression, m *message, acc *datum) (datum, error) {
	result, err := f.p.eval.run(e, m, acc)
	if err != nil {
		return datum{}, err
	}
	d, err := unbox(result, f.step.store.Value)
	if err != nil {
		return datum{}, fmt.Errorf("expression %s: %w", e.text, err)
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
