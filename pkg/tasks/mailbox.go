package tasks

import "sync"

// mailbox is a queue of work for one goroutine. Posting never blocks, so that two loops may post to each
// other. It carries transitions and batches, never single records.
type mailbox struct {
	wake chan struct{} // holds one value while work may be waiting

	mu     sync.Mutex
	queue  []func()
	closed bool
}

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1)}
}

// post appends work. It is dropped after close; false says so.
func (m *mailbox) post(f func()) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.queue = append(m.queue, f)
	m.mu.Unlock()
	m.signal()
	return true
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take removes all waiting work, in order.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue
	m.queue = nil
	return q
}

// close makes every later post fail and returns what was still waiting.
func (m *mailbox) close() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	q := m.queue
	m.queue = nil
	return q
}
