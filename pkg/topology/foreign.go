package topology

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"
)

// A join of tables by a foreign key goes through two repartition topics. The table with the step (the left one) subscribes each of
// its rows to the row of the other table that its foreign key names: a record with that key. Beside the other table there is
// an index of subscriptions by foreign key; a new subscription, and each change of the other table, is answered to the left
// row's task. There the answer is joined with the row, unless the row has changed meanwhile: then an answer to that
// change is on its way.

// instruction says what to do with a subscription.
type instruction uint8

const (
	unsubscribe instruction = iota
	subscribeAndTell
	subscribe // the foreign key is not another one than before: an answer that there is nothing only undoes an earlier result
)

// subscription is the value of a record to the other table: of one of its rows, or to be of one.
type subscription struct {
	what      instruction
	version   uint64 // of the left row's value, 0: it is deleted
	partition int32  // of the left row's task
	key       []byte // of the left row
}

const subscriptionLen = 1 + 8 + 4

func (s *subscription) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, byte(s.what)), s.version)
	return append(binary.BigEndian.AppendUint32(b, uint32(s.partition)), s.key...)
}

func parseSubscription(b []byte) (s subscription, ok bool) {
	if len(b) < subscriptionLen || b[0] > byte(subscribe) {
		return s, false
	}
	return subscription{instruction(b[0]), binary.BigEndian.Uint64(b[1:]), int32(binary.BigEndian.Uint32(b[9:])), b[subscriptionLen:]}, true
}

// versionOf tells values apart: answers to an earlier one do not count any more.
func versionOf(value []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(value)
	return max(1, h.Sum64())
}

// answer is the value of a record to the left row's task.
type answer struct {
	version uint64 // of the left row's value, as in the subscription
	value   []byte // nil: there is no row
	quiet   bool   // then, that matters only if there was a result
}

const answerLen = 8 + 1

func (a *answer) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, a.version)
	switch {
	case a.value != nil:
		return append(append(b, 1), a.value...)
	case a.quiet:
		return append(b, 2)
	default:
		return append(b, 0)
	}
}

func parseAnswer(b []byte) (a answer, ok bool) {
	if len(b) < answerLen || b[8] > 2 || b[8] != 1 && len(b) > answerLen {
		return a, false
	}
	a.version, a.quiet = binary.BigEndian.Uint64(b), b[8] == 2
	if b[8] == 1 {
		a.value = b[answerLen:len(b):len(b)]
	}
	return a, true
}

// subscribeStep sends the subscriptions of a table's rows. Those without a foreign key, and deleted ones, go on to the next step.
type subscribeStep struct {
	kind  joinKind
	topic string
	key   *expression // the foreign key
	to    Format
	value Format // of the rows
}

func (s *subscribeStep) String() string { return "subscribe by " + s.key.text + " at " + s.topic }

func (s *subscribeStep) start(c *chain, next operator) operator {
	return &subscribeOperator{subscribeStep: s, p: c.p, next: next}
}

type subscribeOperator struct {
	*subscribeStep
	p    *Processor
	next operator
}

func (o *subscribeOperator) process(m *message) error {
	was, err := o.foreign(o.p, m, m.old)
	if err != nil {
		return err
	}
	now, err := o.foreign(o.p, m, m.value)
	if err != nil {
		return err
	}
	s := subscription{partition: m.source.Partition, key: m.key.raw}
	if !m.value.null {
		if err := m.value.encode(o.value, &o.p.slabs); err != nil {
			return fault{err}
		}
		s.version = versionOf(m.value.raw)
	}
	send := func(key []byte, what instruction) error {
		s.what = what
		return o.send(m, key, &s)
	}
	moved := was != nil && !bytes.Equal(was, now)
	if moved {
		if err := send(was, unsubscribe); err != nil {
			return err
		}
	}
	switch {
	case now == nil && !m.value.null && o.kind == inner:
		o.p.NullKeys++
		fallthrough
	case now == nil && (!m.value.null || !m.old.null):
		return o.next.process(m) // it needs no answer; those on their way do not count any more
	case now != nil && !moved && o.kind == inner:
		return send(now, subscribe)
	case now != nil:
		return send(now, subscribeAndTell)
	}
	return nil
}

// foreign is the foreign key of a row, nil if it has none.
func (s *subscribeStep) foreign(p *Processor, m *message, row datum) ([]byte, error) {
	if row.null {
		return nil, nil
	}
	value := m.value
	m.value = row
	key, err := p.eval.datum(s.key, m, s.to)
	m.value = value
	if err == nil {
		err = key.encode(s.to, &p.slabs)
	}
	if err != nil {
		return nil, fault{fmt.Errorf("foreign key: %w", err)}
	}
	return key.raw, nil
}

func (o *subscribeOperator) send(m *message, key []byte, s *subscription) error {
	return o.p.write(m, o.topic, -1, key, s.append(o.p.slabs.bytes(subscriptionLen + len(s.key))[:0]))
}

// write adds a record to what the present one writes, unless it would be too large.
func (p *Processor) write(m *message, topic string, partition int32, key, value []byte) error {
	if err := p.Limits.oversized(sizeOf(key, value, m.source.Headers), topic, "the record for topic", topic); err != nil {
		return fault{err}
	}
	r := p.slabs.record()
	r.Topic, r.Partition, r.Key, r.Value = topic, partition, key, value
	r.Headers, r.Timestamp = m.source.Headers, time.UnixMilli(m.ts)
	p.Out++
	p.pending = append(p.pending, r)
	return nil
}

// answerStep keeps the subscriptions to the rows of a table, and answers them.
type answerStep struct {
	topic string
	index StoreSpec // of subscriptions
	rows  StoreSpec
	with  *flow
}

func (s *answerStep) String() string {
	return "answer from table " + s.with.seg.stream + " to " + s.topic + " (store " + s.index.Name + ")"
}
func (s *answerStep) joins() *flow       { return s.with }
func (s *answerStep) keeps() []StoreSpec { return []StoreSpec{s.index} }

func (s *answerStep) start(c *chain, _ operator) operator {
	o := &answerOperator{answerStep: s, index: c.rows(&s.index), rows: c.row(&s.rows)}
	c.others[s] = &answerChange{o}
	return o
}

type answerOperator struct {
	*answerStep
	index  rows
	rows   row
	buf, v []byte
}

// process takes a subscription: m's key is the foreign key.
func (o *answerOperator) process(m *message) error {
	s, ok := parseSubscription(m.value.raw)
	if m.key.null || !ok {
		return fault{fmt.Errorf("%d bytes are no subscription", len(m.value.raw))}
	}
	found, err := o.rows.find(m)
	if err != nil {
		return err
	}
	o.buf = append(appendForeign(o.buf[:0], m.key.raw), s.key...)
	if s.what == subscribe || s.what == subscribeAndTell {
		o.v = s.append(binary.BigEndian.AppendUint64(o.v[:0], uint64(m.ts)))
		err = o.index.put(o.buf, o.v)
	} else {
		err = o.index.remove(o.buf)
	}
	if err != nil {
		return err
	}
	value, err := o.bytes(&found.value)
	if err != nil {
		return err
	}
	if s.what != unsubscribe {
		if value != nil {
			m.ts = max(m.ts, found.ts)
		}
		return o.answer(m, &s, value)
	}
	return nil
}

func (o *answerOperator) bytes(d *datum) ([]byte, error) {
	if d.null {
		return nil, nil
	}
	if err := d.encode(o.answerStep.rows.Value, &o.rows.p.slabs); err != nil {
		return nil, fault{err}
	}
	return d.raw, nil
}

func (o *answerOperator) answer(m *message, s *subscription, value []byte) error {
	p, a := o.rows.p, answer{version: s.version, value: value, quiet: s.what == subscribe}
	return p.write(m, o.topic, s.partition, p.slabs.copy(s.key), a.append(p.slabs.bytes(answerLen + len(value))[:0]))
}

// appendForeign appends what the index entries of a foreign key begin with.
func appendForeign(b, key []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(key))), key...)
}

// answerChange answers all subscriptions to a row that has changed.
type answerChange struct{ *answerOperator }

func (o *answerChange) process(m *message) error {
	if err := m.key.encode(o.rows.spec.Key, &o.rows.p.slabs); err != nil {
		return fault{err}
	}
	value, err := o.bytes(&m.value)
	if err != nil {
		return err
	}
	prefix := appendForeign(nil, m.key.raw)
	var bad error
	err = o.index.scan(prefix, after(prefix), func(row, entry []byte) bool {
		s, ok := subscription{}, false
		if len(entry) >= stampLen {
			s, ok = parseSubscription(entry[stampLen:])
		}
		if !ok {
			bad = o.index.spec.corrupt(entry)
			return false
		}
		s.what = subscribeAndTell // the row is not new any more
		bad = o.answer(m, &s, value)
		return bad == nil
	})
	if bad != nil {
		return bad
	}
	return err
}

// after is the least key behind all that begin with the prefix; nil: there is none.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
