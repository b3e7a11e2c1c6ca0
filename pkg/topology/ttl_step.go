package topology

import (
	"fmt"
	"time"
)

// ttlStep is an aggregate, or a table, whose rows are deleted when they have not changed for a while.
type ttlStep struct {
	inner  step
	rows   StoreSpec
	index  StoreSpec
	after  int64                   // ms
	result func(c *chain) *folding // what rows look like to what follows; nil: as they are
}

func (s *ttlStep) String() string {
	return fmt.Sprintf("%s, rows go after %s (store %s)", s.inner, time.Duration(s.after)*time.Millisecond, s.index.Name)
}

func (s *ttlStep) keeps() []StoreSpec { return []StoreSpec{s.rows, s.index} }

func (s *ttlStep) start(c *chain, next operator) operator {
	o := &ttlOperator{ttlStep: s, rows: c.row(&s.rows), seen: newExpiry(c, &s.index, s.after), old: c.seg.old, out: next}
	if s.result != nil {
		o.folding = s.result(c)
	}
	o.in = s.inner.start(c, ttlChanged{o})
	return o
}

// ttlOperator deletes rows whose time is over before the present record is processed; ttlChanged behind the inner step notes
// what has changed.
type ttlOperator struct {
	*ttlStep
	rows    row
	folding *folding
	seen    *expiry
	old     bool
	in, out operator
	gone    message
}

func (o *ttlOperator) process(m *message) error {
	if m.key.null {
		return o.in.process(m)
	}
	now, err := o.seen.advance(m.ts)
	for err == nil {
		var keys [][]byte
		if keys, err = o.seen.due(now, sending); len(keys) == 0 {
			break
		}
		for i := 0; err == nil && i < len(keys); i++ {
			err = o.expire(m, keys[i], now)
		}
	}
	if err != nil {
		return err
	}
	return o.in.process(m)
}

// expire deletes a row and hands a null on.
func (o *ttlOperator) expire(m *message, raw []byte, now int64) error {
	key, err := decodeDatum(o.rows.spec.Key, raw, false)
	if err != nil {
		return o.rows.spec.corrupt(raw)
	}
	o.gone = message{key: key, value: nullDatum(), old: nullDatum(), ts: now, source: m.source}
	stored, ok, err := o.rows.get(&o.gone)
	if err != nil {
		return err
	}
	was, err := o.rows.spec.parse(stored, ok, &o.rows.p.slabs)
	if err != nil {
		return err
	}
	if o.old {
		if o.gone.old = was.value; o.folding != nil {
			if o.gone.old, err = o.folding.of(was.value); err != nil {
				return err
			}
		}
	}
	o.rows.store.Delete(raw)
	if err := o.seen.forget(raw); err != nil || !ok {
		return err
	}
	before := o.rows.p.mark()
	if err := o.out.process(&o.gone); err != nil {
		return o.rows.p.failed(before, fmt.Errorf("row that was deleted after its time: %w", err))
	}
	return nil
}

type ttlChanged struct{ *ttlOperator }

func (o ttlChanged) process(m *message) error {
	if err := m.key.encode(o.rows.spec.Key, &o.rows.p.slabs); err != nil {
		return fault{err}
	}
	var err error
	if m.value.null {
		err = o.seen.forget(m.key.raw)
	} else {
		err = o.seen.note(m.key.raw, m.ts)
	}
	if err != nil {
		return err
	}
	return o.out.process(m)
}
