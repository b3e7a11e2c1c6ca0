package topology

import "fmt"

// resolveStep joins the rows of a table with the answers to their subscriptions.
type resolveStep struct {
	joined
	rows    StoreSpec // of the left table
	results StoreSpec
	with    *flow // the left table: rows that need no answer
	keys    *subscribeStep
	from    string // the other one
	its     Format // of its values
}

func (s *resolveStep) String() string { return s.describe("foreign table " + s.from) }
func (s *resolveStep) joins() *flow   { return s.with }

func (s *resolveStep) start(c *chain, next operator) operator {
	o := &resolveOperator{resolveStep: s, rows: c.row(&s.rows), results: c.row(&s.results), next: next}
	c.others[s] = &resolveAlone{o}
	return o
}

type resolveOperator struct {
	*resolveStep
	rows, results row
	next          operator
}

// process takes an answer: m's key is that of the left row.
func (o *resolveOperator) process(m *message) error {
	a, ok := parseAnswer(m.value.raw)
	if m.key.null || !ok {
		return fault{fmt.Errorf("%d bytes are no answer to a subscription", len(m.value.raw))}
	}
	found, err := o.rows.find(m)
	if err != nil {
		return err
	}
	now := uint64(0)
	if !found.value.null {
		if err := found.value.encode(o.resolveStep.rows.Value, &o.rows.p.slabs); err != nil {
			return fault{err}
		}
		now = versionOf(found.value.raw)
	}
	if now != a.version {
		return nil // the row has changed since, and the answer to that is on its way
	}
	other, err := decodeDatum(o.its, a.value, true)
	if err != nil {
		return fault{fmt.Errorf("answer of table %s: %w", o.from, err)}
	}
	if m.value, err = o.combine(&o.rows.p.eval, m, found.value, other); err != nil {
		return err
	}
	return o.send(m, a.quiet)
}

// send hands a result on. A quiet null matters only if there was a result.
func (o *resolveOperator) send(m *message, quiet bool) error {
	if quiet && m.value.null {
		if was, err := o.results.find(m); err != nil || was.value.null {
			return err
		}
	}
	return o.next.process(m)
}

// resolveAlone takes rows without a foreign key.
type resolveAlone struct{ *resolveOperator }

func (o *resolveAlone) process(m *message) error {
	was, err := o.keys.foreign(o.rows.p, m, m.old)
	if err != nil {
		return err
	}
	if m.value, err = o.combine(&o.rows.p.eval, m, m.value, nullDatum()); err != nil {
		return err
	}
	return o.send(m, was == nil && o.kind == inner)
}

// joinForeign joins this table with another one by a foreign key.
func (c *cutter) joinForeign(j joined, with *flow, f *joinFields) {
	if j.kind == outer {
		f.kind.Errorf("take inner or left", "rows that no foreign key names have no key in the result")
		return
	}
	if c.atCommit || with.atCommit {
		f.value.Errorf("leave emit: commit out", "at a commit a table's changes do not tell what there was before, which a join of tables needs")
		c.ok = false
		return
	}
	on := c.expression(f.on)
	if on == nil {
		c.ok = false
		return
	}
	if have, ok := on.format(with.key); !ok || fitOf(have, with.key) == misfits {
		f.on.ExprErrorf(1, 0, "convert with string(), int() or float()", "the key of %s is %s, but this gives %s", with, with.key, on.typ)
		c.ok = false
		return
	}
	c.materialize(with, f.value)
	rows := c.materialized(f.value)
	c.segment.demandOld()
	name := c.storeName("join", f.store)
	subscriptions, answers := RepartitionTopic(c.app, name+"-subscriptions"), RepartitionTopic(c.app, name+"-answers")
	index := StoreSpec{Name: name + "-index", Key: with.key, Value: Bytes, Layout: Index}
	index.Changelog = ChangelogTopic(c.app, index.Name)
	if !c.checkName(index, subscriptions, f.store, f.value) {
		c.ok = false
		return
	}
	keyHere, source := c.key, c.source

	keys := &subscribeStep{kind: j.kind, topic: subscriptions, key: on, to: with.key, value: rows.Value}
	c.add(keys)
	c.segment.sinks = append(c.segment.sinks, Sink{Topic: subscriptions, Internal: true, Key: Serde{Format: with.key}, Value: Serde{Format: Bytes}})
	mine := &flow{place: c.place, seg: c.segment}
	c.segment.end = mine

	a := &answerStep{topic: answers, index: index, rows: *with.rows, with: with}
	c.behind(subscriptions, source, with.key)
	c.segment.stores = append(c.segment.stores, index)
	c.segment.sinks = append(c.segment.sinks, Sink{Topic: answers, Internal: true, Key: Serde{Format: keyHere}, Value: Serde{Format: Bytes}})
	c.tapped(with, a)

	r := &resolveStep{joined: j, rows: rows, with: mine, keys: keys, from: with.seg.stream, its: with.value}
	c.behind(answers, source, keyHere)
	c.value = rows.Value
	if c.joinedValue(&r.joined, f.value, with.value) {
		c.tapped(mine, r)
		c.table, c.rows, c.nullable = true, nil, true
		c.keepRows(c.builder, c.segment, f.value) // which tells what there was before
		r.results = *c.rows
	}
}

// behind starts a segment from an internal topic.
func (c *cutter) behind(topic string, source Source, key Format) {
	source.Topic, source.Internal, source.Start = topic, true, Earliest
	s := c.newSegment()
	s.source, s.key, s.value = source, Serde{Format: key}, Serde{Format: Bytes}
	c.source = source
	c.begin(s)
	c.table = false
}

// tapped adds a step with a second input.
func (c *cutter) tapped(f *flow, s joining) {
	c.segment.joins = append(c.segment.joins, f)
	f.taps = append(f.taps, tap{seg: c.segment, step: s})
	c.add(s)
}
