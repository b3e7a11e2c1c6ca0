package topology

import (
	"bytes"
	"fmt"
	"sync"
)

// Global is a table that every instance has whole, whatever the partitions of its topic.
type Global struct {
	Name       string
	Topic      string
	Key, Value Format
}

// GlobalTable holds the rows of a Global. It may be used from any goroutine.
type GlobalTable struct {
	mu   sync.RWMutex
	rows map[string][]byte
}

// NewGlobalTable returns a table without rows.
func NewGlobalTable() *GlobalTable { return &GlobalTable{rows: make(map[string][]byte)} }

// Put sets the row of a key, as the topic has both; a nil value deletes it. A record without a key changes nothing.
// It copies what it is given.
func (t *GlobalTable) Put(key, value []byte) {
	if key == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if value == nil {
		delete(t.rows, string(key))
		return
	}
	t.rows[string(key)] = bytes.Clone(value)
}

// Get returns the row of a key, nil if there is none. It stays as it is.
func (t *GlobalTable) Get(key []byte) []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rows[string(key)]
}

// Clear deletes all rows.
func (t *GlobalTable) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.rows)
}

// globalJoinStep joins each record of a stream with what a global table has at that moment for a key that an expression gives.
type globalJoinStep struct {
	joined
	table *Global
	key   *expression
}

func (s *globalJoinStep) String() string {
	return s.describe(fmt.Sprintf("global table %s by %s", s.table.Name, s.key.text))
}

func (s *globalJoinStep) start(c *chain, next operator) operator {
	return &globalJoinOperator{globalJoinStep: s, p: c.p, rows: c.p.globals[s.table.Name], next: next}
}

type globalJoinOperator struct {
	*globalJoinStep
	p    *Processor
	rows *GlobalTable
	next operator
}

func (o *globalJoinOperator) process(m *message) error {
	if m.value.null {
		o.p.NullValues++
		return nil
	}
	key, err := o.p.eval.datum(o.key, m, o.table.Key)
	if err == nil {
		err = key.encode(o.table.Key, &o.p.slabs)
	}
	if err != nil {
		return fault{fmt.Errorf("key of global table %s: %w", o.table.Name, err)}
	}
	other := nullDatum()
	switch {
	case !key.null:
		if other, err = decodeDatum(o.table.Value, o.rows.Get(key.raw), true); err != nil {
			return fault{fmt.Errorf("row %q of global table %s: %w", key.raw, o.table.Name, err)}
		}
	case o.kind == inner:
		o.p.NullKeys++
		return nil
	}
	if !o.has(true, !other.null) {
		return nil
	}
	value, err := o.combine(&o.p.eval, m, m.value, other)
	if err != nil {
		return err
	}
	m.value = value
	return o.next.process(m)
}
