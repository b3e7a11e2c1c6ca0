package swap

import (
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// pace reckons how long the rest of a swap takes.
type pace struct {
	tasks map[string]bool // those that the old pool has had; true: another instance runs it now
	since time.Time       // when the reckoning began
	from  float64         // the share of the work that was done then
}

// What has to be seen before a pace says anything.
const (
	leastTime = 2 * time.Second
	leastWork = 0.01
)

// observe counts the tasks, and says how much time is left; negative: not known. A task is done to the share of its changelog that its
// learner has replayed.
func (p *pace) observe(g *group, now time.Time) (tasks, moved int, left time.Duration) {
	old := make(map[string]bool, len(g.old))
	for _, s := range g.old {
		old[s.Instance] = true
	}
	learned := replayed(g.statuses)
	work := 0.0
	for _, t := range g.view.Tasks {
		_, known := p.tasks[t.ID]
		switch {
		case t.Active == nil && !known:
		case t.Active != nil && old[*t.Active]:
			p.tasks[t.ID] = false
		case t.Active != nil && known:
			p.tasks[t.ID] = true
		}
	}
	for id, done := range p.tasks {
		if done {
			moved++
			work++
		} else {
			work += learned[id]
		}
	}
	if tasks = len(p.tasks); tasks == 0 {
		return 0, 0, 0
	}
	done := work / float64(tasks)
	if p.since.IsZero() || done < p.from {
		p.since, p.from = now, done
	}
	passed := now.Sub(p.since)
	switch {
	case moved == tasks:
		return tasks, moved, 0
	case passed < leastTime || done-p.from < leastWork:
		return tasks, moved, -1
	}
	return tasks, moved, time.Duration(float64(passed) * (1 - done) / (done - p.from))
}

// replayed is, for each task being learned, how much of what its learner was behind at most it has caught up with, from 0 to 1.
func replayed(statuses []control.Status) map[string]float64 {
	share := make(map[string]float64)
	for _, s := range statuses {
		for _, l := range s.Learning {
			switch most := s.Behind[l.Task]; {
			case l.Ready:
				share[l.Task] = 1
			case l.Lag >= 0 && most > 0:
				share[l.Task] = 1 - float64(l.Lag)/float64(most)
			}
		}
	}
	return share
}
