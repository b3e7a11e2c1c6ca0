package leave

import (
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Mark asks one run of this instance to leave.
type Mark struct {
	Incarnation assign.Incarnation
	Deadline    Deadline
	By          string // who asked, for logs
}

// Order is a mark that the instance follows. Its deadline is never Default.
type Order struct {
	Deadline Deadline  `json:"deadline"`
	By       string    `json:"by"`
	Since    time.Time `json:"since"`
}

// Accept is the order that follows from a mark, given the one in force, if any. A mark without a deadline
// of its own leaves the running one alone, so that repeating a mark does not start the time anew; otherwise
// the latest mark counts, except that Now cannot be taken back.
func Accept(current *Order, m Mark, now time.Time, timeout time.Duration) Order {
	if current == nil {
		d := m.Deadline
		if d == Default {
			d = After(now, timeout)
		}
		return Order{Deadline: d, By: m.By, Since: now}
	}
	next := *current
	if m.Deadline != Default && current.Deadline != Now {
		next.Deadline = m.Deadline
		next.By = m.By
	}
	return next
}

// relation says whose a mark is.
type relation uint8

const (
	ours relation = iota
	older
	newer
)

// relate compares the run that a mark names with the one that reads it.
func relate(self, named assign.Incarnation) relation {
	switch {
	case self.SameRun(named):
		return ours
	case named.Compare(self) < 0:
		return older
	}
	return newer
}
