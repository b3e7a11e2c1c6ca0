package topology

import (
	"errors"
	"fmt"
	"sync"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// Global is a table that every instance has whole, whatever the partitions of its topic.
type Global struct {
	Name       string
	Topic      string
	Key, Value Serde
}

// GlobalTable holds the rows of a Global, by key and with values as steps see them: those of a codec as JSON. It may be used from any
// goroutine.
type GlobalTable struct {
	of   *Global
	mu   sync.RWMutex
	rows map[string]globalRow
}

// globalRow is the last value of a key, or what is wrong with it.
type globalRow struct {
	value []byte
	err   error
}

// NewGlobalTable returns a table without rows.
func NewGlobalTable(of *Global) *GlobalTable {
	return &GlobalTable{of: of, rows: make(map[string]globalRow)}
}

// Put sets the row of a key, as the topic has both; a nil value deletes it. A record without a key changes nothing.
// It copies what it is given.
//
// An error says what is wrong with the record. Where that is its value, whoever looks for the row gets the error too. With a
// *format.Unavailable the record is not at fault: nothing has changed, and it is to be put again.
func (t *GlobalTable) Put(key, value []byte) error {
	if key == nil {
		return nil
	}
	row := globalRow{}
	at, err := t.of.Key.plain(key)
	if err == nil {
		row.value, row.err = t.of.Value.plain(value)
	}
	var away *format.Unavailable
	if err = errors.Join(err, row.err); at == nil || errors.As(err, &away) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if row.value == nil && row.err == nil {
		delete(t.rows, string(at))
	} else {
		t.rows[string(at)] = row
	}
	return err
}

// plain makes a copy of the bytes of a topic in the format of steps; nil for null.
func (s *Serde) plain(raw []byte) ([]byte, error) {
	d, err := s.read(raw, true)
	switch {
	case err != nil || d.null:
		return nil, err
	case s.Codec == nil:
		return append([]byte{}, raw...), nil
	default:
		return s.Format.Encode(d.v)
	}
}

// Get returns the row of a key, nil if there is none. It stays as it is.
func (t *GlobalTable) Get(key []byte) ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row := t.rows[string(key)]
	return row.value, row.err
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
	key, err := o.p.eval.datum(o.key, m, o.table.Key.Format)
	if err == nil {
		err = key.encode(o.table.Key.Format, &o.p.slabs)
	}
	if err != nil {
		return fault{fmt.Errorf("key of global table %s: %w", o.table.Name, err)}
	}
	other := nullDatum()
	switch {
	case !key.null:
		row, err := o.rows.Get(key.raw)
		if err == nil {
			other, err = decodeDatum(o.table.Value.Format, row, true)
		}
		if err != nil {
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
