package format

import (
	"fmt"
	"sync"
)

// Memory is a Registry for trials: it is empty at first, and has every schema from the moment at which its id is asked for. The zero
// Memory is ready to use.
type Memory struct {
	mu       sync.Mutex
	schemas  []Schema
	subjects map[string]int // the latest id
}

// Schema implements Registry.
func (m *Memory) Schema(id int) (Schema, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id < 1 || id > len(m.schemas) {
		return Schema{}, ErrNoSchema
	}
	return m.schemas[id-1], nil
}

// Latest implements Registry.
func (m *Memory) Latest(subject string) (int, Schema, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.subjects[subject]
	if id == 0 {
		return 0, Schema{}, fmt.Errorf("%w in a trial", ErrNoSchema)
	}
	return id, m.schemas[id-1], nil
}

// ID implements Registry.
func (m *Memory) ID(subject string, s Schema, _ bool) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.subjects == nil {
		m.subjects = make(map[string]int)
	}
	m.schemas = append(m.schemas, s)
	m.subjects[subject] = len(m.schemas)
	return len(m.schemas), nil
}
