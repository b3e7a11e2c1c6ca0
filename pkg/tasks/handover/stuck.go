package handover

import (
	"fmt"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// stuckFailures in a row are as many as a copy may have before it counts as stuck.
const stuckFailures = 10

// mostDoubled bounds how often the time is doubled for which a copy that got stuck again counts as stuck.
const mostDoubled = 7

// Stuck watches the copies of one instance: which of them do not come on, so that others had better have them. A copy is stuck
// when it has not moved for a time although it is behind, or has failed too often in a row. It counts as stuck for that
// time again, and twice as long each time that it happens before the copy has caught up: so tasks do not go to and fro between
// instances that cannot have them. Not safe for concurrent use.
type Stuck struct {
	After  time.Duration // without progress
	copies map[assign.TaskID]*watched
}

// Copy is what is to be known of a copy at work.
type Copy struct {
	Position int64 // of its changelogs; negative: it is not open
	Ready    bool
	Failures int // in a row
	Err      error
}

// StuckCopy is a copy that counts as stuck.
type StuckCopy struct {
	Task     assign.TaskID
	Reason   string
	Failures int
}

type watched struct {
	at       bool // work
	position int64
	since    time.Time // when it last moved
	times    int       // that it got stuck
	until    time.Time // counts as stuck until then
	reason   string
	failures int
}

// Watch takes the state of a copy at work.
func (s *Stuck) Watch(t assign.TaskID, c Copy, now time.Time) {
	w := s.copies[t]
	if c.Ready {
		delete(s.copies, t)
		return
	}
	if w == nil {
		w = &watched{}
		if s.copies == nil {
			s.copies = make(map[assign.TaskID]*watched)
		}
		s.copies[t] = w
	}
	moved := c.Position >= 0 && c.Position != w.position
	switch {
	case !w.at:
		w.at, w.since = true, now
	case moved && c.Failures == 0:
		w.since, w.until = now, time.Time{}
	case now.Before(w.until):
	case c.Failures >= stuckFailures:
		s.mark(w, fmt.Sprintf("its copy fails again and again, another instance is to have it: %v", c.Err), c.Failures, now)
	case now.Sub(w.since) >= s.After:
		s.mark(w, fmt.Sprintf("its copy has not come on for %v, another instance is to have it", s.After), 0, now)
	}
	if c.Position >= 0 {
		w.position = c.Position
	}
}

func (s *Stuck) mark(w *watched, reason string, failures int, now time.Time) {
	w.until = now.Add(s.After << min(w.times, mostDoubled))
	w.times++
	w.reason, w.failures = reason, failures
}

// Forget says that the task runs here.
func (s *Stuck) Forget(t assign.TaskID) { delete(s.copies, t) }

// Times is how often a copy got stuck since it last had caught up.
func (s *Stuck) Times(t assign.TaskID) int {
	if w := s.copies[t]; w != nil {
		return w.times
	}
	return 0
}

// At lists the copies that count as stuck, in order of task. Those of tasks for which working says no are at work no more.
func (s *Stuck) At(now time.Time, working func(assign.TaskID) bool) (stuck []StuckCopy) {
	for t, w := range s.copies {
		w.at = w.at && working(t)
		switch {
		case now.Before(w.until):
			stuck = append(stuck, StuckCopy{Task: t, Reason: w.reason, Failures: w.failures})
		case !w.at && now.Sub(w.until) >= s.After<<mostDoubled:
			delete(s.copies, t) // long ago
		}
	}
	slices.SortFunc(stuck, func(a, b StuckCopy) int { return a.Task.Compare(b.Task) })
	return stuck
}
