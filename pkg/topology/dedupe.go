package topology

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// dedupeStep passes the first of records with the same key, or the same key and value of an expression, and drops those whose
// timestamps are near it.
type dedupeStep struct {
	by    *expression // nil: the key alone
	store StoreSpec
	after int64 // ms
}

func (s *dedupeStep) String() string {
	text := "dedupe"
	if s.by != nil {
		text += " by " + s.by.text
	}
	return fmt.Sprintf("%s within %s (store %s)", text, time.Duration(s.after)*time.Millisecond, s.store.Name)
}

func (s *dedupeStep) keeps() []StoreSpec { return []StoreSpec{s.store} }

func (s *dedupeStep) start(c *chain, next operator) operator {
	return &dedupeOperator{dedupeStep: s, seen: newExpiry(c, &s.store, s.after), next: next}
}

type dedupeOperator struct {
	*dedupeStep
	seen *expiry
	id   []byte
	next operator
}

func (o *dedupeOperator) process(m *message) error {
	p := o.seen.p
	if m.key.null {
		p.NullKeys++
		return nil
	}
	if err := o.identify(p, m); err != nil {
		return fault{err}
	}
	now, err := o.seen.advance(m.ts)
	if err != nil {
		return err
	}
	first, ok, err := o.seen.since(o.id)
	if err != nil {
		return err
	}
	fresh := !ok || first <= now-o.after || m.ts >= first+o.after || m.ts <= first-o.after
	if fresh && (!ok || m.ts > first) {
		if err := o.seen.note(o.id, m.ts); err != nil {
			return err
		}
	}
	old, err := o.seen.due(now, expiring)
	for i := 0; err == nil && i < len(old); i++ {
		err = o.seen.forget(old[i])
	}
	if err != nil || !fresh {
		return err
	}
	return o.next.process(m)
}

// identify makes what tells records apart.
func (o *dedupeOperator) identify(p *Processor, m *message) error {
	if err := m.key.encode(o.store.Key, &p.slabs); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	o.id = append(o.id[:0], m.key.raw...)
	if o.by == nil {
		return nil
	}
	v, err := p.eval.boxed(o.by, m)
	if err != nil {
		return err
	}
	text, err := p.slabs.encodeJSON(v)
	o.id = append(append(binary.BigEndian.AppendUint32(o.id[:0], uint32(len(m.key.raw))), m.key.raw...), text...)
	return err
}

// dedupe adds a step that drops repeated records.
func (c *cutter) dedupe(arg, at yamlnode.Node) {
	if !arg.IsMap() {
		at.Errorf("dedupe: {within: 10m} or {within: 10m, by: value.id}", "want a time within which a record counts as repeated")
		return
	}
	if !c.checkUnwindowed(at) {
		return
	}
	m := arg.Map()
	within := m.Require("within", "how far apart the timestamps of repeated records may be: within: 10m")
	by, store := m.Get("by"), m.Get("store")
	m.Done()
	s := &dedupeStep{after: span(within, time.Millisecond)}
	if by.Exists() {
		if s.by = c.expression(by); s.by == nil {
			return
		}
	}
	if !within.Exists() {
		return
	}
	s.store = StoreSpec{Name: c.storeName("dedupe", store), Key: c.key, Value: Bytes, Layout: Timed}
	s.store.Changelog = ChangelogTopic(c.app, s.store.Name)
	topic := ""
	if c.keyChanged {
		topic = RepartitionTopic(c.app, s.store.Name)
		c.repartition(s.store.Name, passesNulls)
	}
	if !c.checkName(s.store, topic, store, at) {
		return
	}
	c.segment.stores = append(c.segment.stores, s.store)
	c.add(s)
}
