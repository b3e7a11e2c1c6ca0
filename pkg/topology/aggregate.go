package topology

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/format"
	"github.com/streamworker/streamworker/pkg/topology/window"
)

// stampLen is the length of the timestamp in front of every value in a store, and so in its changelog: ms
// since the epoch, big-endian.
const stampLen = 8

// aggregateStep folds the messages of a key into one value in a store, and hands on every new value, or at a commit the last one
// of each key.
type aggregateStep struct {
	name                     string
	store                    StoreSpec
	value                    *expression // what a message brings; nil: its value, or nothing
	expr                     *expression // reduce, aggregate: the next value from acc and value
	initial, subtract, merge *expression // aggregate; subtract also of a reduce: the value without one more
	by, id                   *expression // top_n: what is ranked by, and what tells values apart
	most                     int         // collect, top_n: values kept
	folded                   Format      // of what a message brings
	out                      Format      // of what is sent on
	input                    Format      // of the message's value
	atCommit                 bool        // emit: commit
	onClose                  bool        // emit: close
	late                     *sinkStep   // where records go that come too late for their windows; nil: nowhere
}

func (s *aggregateStep) String() string {
	text := s.name
	if s.value != nil {
		text += " " + s.value.text
	}
	for _, e := range []*expression{s.initial, s.expr, s.subtract, s.merge, s.by, s.id} {
		if e != nil {
			text += " " + e.text
		}
	}
	if s.most > 0 {
		text += fmt.Sprintf(" up to %d", s.most)
	}
	text = fmt.Sprintf("%s (store %s: key %s, value %s", text, s.store.Name, s.store.Key, s.store.Value)
	if s.store.Window != nil {
		text += ", window " + s.store.Window.String()
	}
	switch {
	case s.atCommit:
		text += ", emitted at commits"
	case s.onClose:
		text += ", emitted on close"
	}
	if text += ")"; s.late != nil {
		text += ", late records to " + s.late.Topic
	}
	return text
}

func (s *aggregateStep) keeps() []StoreSpec { return []StoreSpec{s.store} }

func (s *aggregateStep) start(c *chain, next operator) operator {
	if s.store.Window != nil {
		return s.startWindowed(c, next)
	}
	row := c.row(&s.store)
	if s.atCommit {
		row.late = newEmitter(c, s, next)
		next = end{}
	}
	if s.name == "count" {
		return &countOperator{row: row, old: c.seg.old, next: next}
	}
	return &foldOperator{row: row, folding: newFolding(c, s), old: c.seg.old, next: next}
}

// startWindowed starts the operator of an aggregate in windows.
func (s *aggregateStep) startWindowed(c *chain, next operator) operator {
	w := newWindowing(c, s, next)
	if s.atCommit {
		e := newEmitter(c, s, next)
		e.committed, w.committed, w.next = unknownTime, &e.committed, end{}
	}
	switch s.store.Window.Kind {
	case window.Sliding:
		return slidingWindows{w}
	case window.Session:
		return sessions{w}
	default:
		return timeWindows{w}
	}
}

// row is one entry of a store being changed.
type row struct {
	spec  *StoreSpec
	p     *Processor
	store Store
	buf   []byte

	journaled bool
	late      *emitter // emit: commit
}

func (c *chain) row(s *StoreSpec) row {
	return row{spec: s, p: c.p, store: c.p.stores[s.Name], journaled: c.journaled}
}

// get encodes m's key, and returns what the store has for it. It is to be written next.
func (r *row) get(m *message) (stored []byte, ok bool, err error) {
	if err := m.key.encode(r.spec.Key, &r.p.slabs); err != nil {
		return nil, false, fault{fmt.Errorf("key: %w", err)}
	}
	if stored, ok, err = r.store.Get(m.key.raw); err != nil {
		return nil, false, fmt.Errorf("store %s: %w", r.spec.Name, err)
	}
	if r.journaled || len(r.p.Limits.Topics) > 0 { // outputs may be refused that the changelog takes
		r.p.journal.remember(r.store, m.key.raw, stored, ok)
	}
	if ok && len(stored) < stampLen {
		return nil, false, r.corrupt(stored)
	}
	return stored, ok, nil
}

// read is get without the timestamp, nil if there is nothing. m.ts becomes the later of the two.
func (r *row) read(m *message) ([]byte, error) {
	stored, ok, err := r.get(m)
	if err != nil || !ok {
		return nil, err
	}
	m.ts = max(m.ts, int64(binary.BigEndian.Uint64(stored)))
	return stored[stampLen:], nil
}

// decode reads what get has found. The store's bytes change with the next Put, records keep theirs.
func (r *row) decode(stored []byte, ok bool) (datum, error) {
	if !ok {
		return nullDatum(), nil
	}
	d, err := decodeDatum(r.spec.Value, r.p.slabs.copy(stored[stampLen:]), true)
	if err != nil {
		return d, r.corrupt(stored)
	}
	return d, nil
}

func (r *row) corrupt(stored []byte) error { return r.spec.corrupt(stored) }

func (s *StoreSpec) corrupt(stored []byte) error {
	return fmt.Errorf("store %s has a value of %d bytes that is no %s: was %s written by another topology? Change the store's name or empty the changelog",
		s.Name, len(stored), s.Value, s.Changelog)
}

// write puts a value into the store, unless its record in the changelog would be too large, or the result with the headers of the
// message: what follows need not undo it then.
func (r *row) write(m *message, value []byte) error {
	if err := r.p.Limits.oversized(sizeOf(m.key.raw, value, m.source.Headers)+stampLen, r.spec.Changelog, "the row of store", r.spec.Name); err != nil {
		return fault{err}
	}
	r.buf = binary.BigEndian.AppendUint64(r.buf[:0], uint64(m.ts))
	r.buf = append(r.buf, value...)
	r.store.Put(m.key.raw, r.buf)
	return nil
}

func (r *row) delete(m *message) {
	r.store.Delete(m.key.raw)
	if r.late != nil {
		r.late.deleted(m.ts)
	}
}

type countOperator struct {
	row
	old  bool // what follows wants to know what was there before
	next operator
}

func (o *countOperator) process(m *message) error {
	if !o.p.complete(m) {
		return nil
	}
	stored, err := o.read(m)
	if err != nil {
		return err
	}
	n := uint64(1)
	if o.old {
		m.old = nullDatum()
	}
	if stored != nil {
		if len(stored) != 8 {
			return o.corrupt(stored)
		}
		n += binary.BigEndian.Uint64(stored)
		if o.old {
			m.old = intDatum(int64(n - 1))
		}
	}
	var encoded [8]byte
	binary.BigEndian.PutUint64(encoded[:], n)
	if err := o.write(m, encoded[:]); err != nil {
		return err
	}
	m.value = intDatum(int64(n))
	return o.next.process(m)
}

// foldOperator is any aggregate but count, over all records of a key.
type foldOperator struct {
	row
	*folding
	old  bool
	next operator
}

func (o *foldOperator) process(m *message) error {
	if !o.row.p.complete(m) {
		return nil
	}
	v, some, err := o.brings(m)
	if err != nil {
		return err
	}
	if !some || v.null && o.step.name != "aggregate" {
		o.row.p.NullValues++
		return nil
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
		if m.old, err = o.of(acc.value); err != nil {
			return err
		}
	}
	if v, err = o.folding.next(m, &acc.value, &v); err != nil {
		return err
	}
	return o.set(m, v)
}

// set writes the value that the row has now, and sends it on.
func (o *foldOperator) set(m *message, v datum) error {
	if err := v.encode(o.spec.Value, &o.row.p.slabs); err != nil {
		return fault{err}
	}
	if v.null {
		o.delete(m)
	} else {
		if err := o.write(m, v.raw); err != nil {
			return err
		}
	}
	var err error
	if m.value, err = o.of(v); err != nil {
		return err
	}
	return o.next.process(m)
}

func sumOf(f Format) func(*message, *datum, *datum) (datum, error) {
	if f == Float {
		return func(_ *message, acc, v *datum) (datum, error) { return floatDatum(acc.float() + v.float()), nil }
	}
	return func(_ *message, acc, v *datum) (datum, error) {
		a, b := acc.int(), v.int()
		sum := a + b
		if (a^sum)&(b^sum) < 0 {
			return datum{}, fmt.Errorf("sum of %d and %d does not fit 64 bits", a, b)
		}
		return intDatum(sum), nil
	}
}

// leastOf keeps the one that compares lower, or greater if sign is 1; of equal ones the first.
func leastOf(f Format, sign int) func(*message, *datum, *datum) (datum, error) {
	return func(_ *message, acc, v *datum) (datum, error) {
		order, err := compareData(f, v, acc)
		if err != nil {
			return datum{}, err
		}
		if order*sign > 0 {
			return *v, nil
		}
		return *acc, nil
	}
}

// compareData orders two data of one format. Bytes and strings are compared bytewise; of JSON numbers and
// strings can be compared. NaN counts as less than any number.
func compareData(f Format, a, b *datum) (int, error) {
	switch f {
	case Int:
		return cmp.Compare(a.int(), b.int()), nil
	case Float:
		return cmp.Compare(a.float(), b.float()), nil
	case String, Bytes:
		return strings.Compare(a.text(), b.text()), nil
	default:
		x, errX := a.boxed(JSON)
		y, errY := b.boxed(JSON)
		if err := errors.Join(errX, errY); err != nil {
			return 0, err
		}
		return compareValues(x, y)
	}
}

func compareValues(x, y any) (int, error) {
	if s, ok := x.(string); ok {
		if t, ok := y.(string); ok {
			return strings.Compare(s, t), nil
		}
	}
	i, xInt := format.Integer(x)
	j, yInt := format.Integer(y)
	if xInt && yInt {
		return cmp.Compare(i, j), nil
	}
	p, xNumber := number(x)
	q, yNumber := number(y)
	if !xNumber || !yNumber {
		return 0, fmt.Errorf("cannot compare %s with %s: want numbers or strings", describe(x), describe(y))
	}
	return cmp.Compare(p, q), nil
}

func number(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	n, ok := format.Integer(v)
	return float64(n), ok
}
