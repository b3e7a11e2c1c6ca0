package scenario

import (
	"math"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// restore is one task's state on its way to a member.
type restore struct {
	m        *member
	id       assign.TaskID
	learner  bool
	remains  float64 // bytes
	atSecond float64 // bytes
}

// settle lets time pass until every learner has taken over and every task runs. A member shares its restore
// rate evenly among its learners and the tasks it has to restore before they run.
func (r *run) settle() {
	r.rounds("settle")
	for {
		at := r.restoring()
		if len(at) == 0 {
			return
		}
		next := math.Inf(1)
		for _, x := range at {
			next = min(next, x.remains/x.atSecond)
		}
		r.pass(next, at)
		var names []string
		finished := make(map[string][]assign.TaskID)
		for _, x := range at {
			// What is left after a step of the shortest time is rounding, below a thousandth of a byte.
			if x.remains -= x.atSecond * next; x.remains > 1e-3 {
				x.m.restored[x.id] = r.size(x.id) - x.remains
				continue
			}
			x.m.restored[x.id] = r.size(x.id)
			if x.learner {
				x.m.done[x.id] = true
				if finished[x.m.name] == nil {
					names = append(names, x.m.name)
				}
				finished[x.m.name] = append(finished[x.m.name], x.id)
			}
		}
		var about []string
		for _, name := range names {
			about = append(about, name+list(r.taskNames(finished[name])))
		}
		if len(about) > 0 {
			r.rounds("ready " + strings.Join(about, ", "))
		}
	}
}

// restoring lists what is being restored, members in order of name.
func (r *run) restoring() (all []restore) {
	for _, name := range r.names() {
		m := r.members[name]
		first := len(all)
		for _, id := range m.report.Owned {
			if remains := r.size(id) - m.restored[id]; remains > 0 {
				all = append(all, restore{m: m, id: id, remains: remains})
			}
		}
		for _, c := range m.report.Learning {
			if !m.done[c.Task] {
				all = append(all, restore{m: m, id: c.Task, learner: true, remains: r.size(c.Task) - m.restored[c.Task]})
			}
		}
		for i := first; i < len(all); i++ {
			all[i].atSecond = float64(r.restoreRate) / float64(len(all)-first)
		}
	}
	return all
}

// pass adds up what the given time costs. A task without a runner is one that nobody owns or whose owner
// restores it.
func (r *run) pass(seconds float64, at []restore) {
	r.now += seconds
	running := 0
	for _, m := range r.members {
		running += len(m.report.Owned)
		r.learning += seconds * float64(len(m.report.Learning))
	}
	for _, x := range at {
		if !x.learner {
			running--
		}
	}
	r.gap += seconds * float64(len(r.tasks)-running)
}
