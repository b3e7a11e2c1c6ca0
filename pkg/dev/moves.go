package dev

import (
	"fmt"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// move is a task that was handed over live, and has processed its first records at its new owner.
type move struct {
	task     assign.TaskID
	from, to string
	gap      time.Duration
	at       time.Time // when it was told
}

// order identifies one handover.
type order struct {
	task    assign.TaskID
	release assign.ReleaseID
}

// moves collects what the instances tell of handovers and failures.
type moves struct {
	mu       sync.Mutex
	released map[order]bool    // true: before the stream began, which no gap can tell of
	ahead    map[order]bool    // taken over before their release was told: the two owners are not in step
	names    map[string]string // of instances, by member id
	begun    bool
	taken    []move
	failing  map[assign.TaskID]bool // that could not go on once
	failures []string               // of each of them the first
}

func newMoves() *moves {
	return &moves{released: make(map[order]bool), ahead: make(map[order]bool), names: make(map[string]string), failing: make(map[assign.TaskID]bool)}
}

// events are those of the instance.
func (m *moves) events(id string) tasks.Events {
	return tasks.Events{
		PhaseChanged: func(p tasks.PhaseInfo) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.names[p.Member] = id
		},
		Released: func(r tasks.ReleaseInfo) {
			m.mu.Lock()
			defer m.mu.Unlock()
			o := order{r.Task, r.Release}
			if m.ahead[o] {
				delete(m.ahead, o)
				return
			}
			m.released[o] = !m.begun
		},
		TakenOver: func(t tasks.TakeoverInfo) {
			m.mu.Lock()
			defer m.mu.Unlock()
			o := order{t.Task, t.Release}
			early, told := m.released[o]
			if !told {
				m.ahead[o] = true
			}
			delete(m.released, o)
			if !early {
				m.taken = append(m.taken, move{task: t.Task, from: m.names[t.Release.Owner], to: id, gap: t.Gap, at: time.Now()})
			}
		},
		TaskFailed: func(f tasks.FailureInfo) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if !m.failing[f.Task] {
				m.failing[f.Task] = true
				m.failures = append(m.failures, fmt.Sprintf("task %s cannot go on: %v", f.Task, f.Err))
			}
		},
	}
}

// begin says that the stream begins: from now on handovers count.
func (m *moves) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = true
}

// since are the moves and failures after the first so many.
func (m *moves) since(moved, failed int) ([]move, []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken[moved:len(m.taken):len(m.taken)], m.failures[failed:len(m.failures):len(m.failures)]
}

// underWay is how many tasks were released since the stream began and have processed nothing since.
func (m *moves) underWay() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, early := range m.released {
		if !early {
			n++
		}
	}
	return n
}
