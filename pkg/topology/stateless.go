package topology

import (
	"fmt"
	"time"
)

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
}

func (o *mapOperator) process(m *message) error {
	key, value := m.key, m.value
	var err error
	if o.key != nil {
		if key, err = o.x.datum(o.key, m, o.keyFormat); err != nil {
			return fault{err}
		}
	}
	if o.value != nil {
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
	key, ts := m.key, m.ts
	return o.c.p.eval.each(o.list, m, o.format, func(d datum, err error) error {
		before := o.c.p.mark()
		if err != nil {
			return o.c.p.failed(before, fault{err})
		}
		m.key, m.value, m.ts = key, d, ts
		if err := o.next.process(m); err != nil {
			return o.c.p.failed(before, err)
		}
		return nil
	})
}

// passing says what a repartition topic takes.
type passing uint8

const (
	passesAll    passing = iota // records with key and value
	passesKeys                  // likewise, but the value is left out: the aggregate behind does not look at it
	passesNulls                 // null values too: a table is behind
	passesValues                // null keys too: they join nothing, but give a result
)

// sinkStep writes to a topic, and hands the message on.
type sinkStep struct {
	Sink
	fromKey, fromValue Format // what the message has
	mode               passing
}

func (s *sinkStep) String() string {
	return fmt.Sprintf("to %s (key %s, value %s)", s.Topic, s.Key, s.Value)
}

func (s *sinkStep) start(c *chain, next operator) operator {
	return &sinkOperator{sinkStep: s, p: c.p, next: next}
}

type sinkOperator struct {
	*sinkStep
	p    *Processor
	next operator
}

// noValue is what a repartitioned record carries where only its key counts: not null, which would be dropped.
var noValue = []byte{}

func (o *sinkOperator) process(m *message) error {
	if o.Internal && !o.takes(m) {
		return nil
	}
	key, err := m.key.written(o.fromKey, o.Key, &o.p.slabs)
	if err != nil {
		return fault{fmt.Errorf("key for topic %s: %w", o.Topic, err)}
	}
	value := noValue
	if o.mode != passesKeys {
		if value, err = m.value.written(o.fromValue, o.Value, &o.p.slabs); err != nil {
			return fault{fmt.Errorf("value for topic %s: %w", o.Topic, err)}
		}
	}
	r := o.p.slabs.record()
	r.Topic, r.Partition = o.Topic, -1
	if o.Window != nil && key != nil {
		r.Partition -= int32(len(key)) + 1
		key = o.Window.AppendKey(o.p.slabs.bytes(len(key) + o.Window.KeyOverhead())[:0], key, m.window)
	}
	r.Key, r.Value, r.Headers = key, value, m.source.Headers
	r.Timestamp = time.UnixMilli(m.ts)
	o.p.Out++
	o.p.pending = append(o.p.pending, r)
	return o.next.process(m)
}

// takes tells whether a repartition topic takes m, and counts it if not.
func (o *sinkOperator) takes(m *message) bool {
	if o.mode == passesNulls && !m.key.null || o.mode == passesValues && !m.value.null {
		return true
	}
	return o.p.complete(m)
}
