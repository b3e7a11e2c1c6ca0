package query

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// Group gives the last status of every instance; with an error, those that it knew before.
type Group interface {
	Read(ctx context.Context) ([]control.Status, error)
}

const (
	// freshFor is how long statuses are used before Kafka is asked for newer ones.
	freshFor = 400 * time.Millisecond
	// groupTimeout bounds the question.
	groupTimeout = 800 * time.Millisecond
)

// directory says who has a task. However many ask, Kafka is asked at most once in freshFor.
type directory struct {
	group Group

	mu       sync.Mutex // held while Kafka is asked: the others wait for the same answer
	statuses []control.Status
	err      error
	at       time.Time
}

// find returns an instance other than the asking one that runs the task, or if stale is true has a copy of it; nil if there is none.
func (d *directory) find(ctx context.Context, task, asking string, stale bool) (*control.Status, error) {
	statuses, err := d.read(ctx)
	copies := func(s *control.Status) bool {
		return stale && (slices.Contains(s.Standby, task) || slices.ContainsFunc(s.Learning, func(l control.Learning) bool { return l.Task == task }))
	}
	for _, has := range []func(s *control.Status) bool{func(s *control.Status) bool { return slices.Contains(s.Active, task) }, copies} {
		for i := range statuses {
			s := &statuses[i]
			if s.Instance != asking && s.Left == "" && !s.Stale(time.Now()) && has(s) {
				return s, err
			}
		}
	}
	return nil, err
}

func (d *directory) read(ctx context.Context) ([]control.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.at) < freshFor {
		return d.statuses, d.err
	}
	// Not the request's end: the answer is for all who wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupTimeout)
	defer cancel()
	d.statuses, d.err = d.group.Read(ctx)
	d.at = time.Now()
	return d.statuses, d.err
}
