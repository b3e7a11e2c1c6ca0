package scenario

import (
	"github.com/streamworker/streamworker/pkg/group/assign"
)

// restore is one task's state on its way to a member.
type restore struct {
	m       *member
	id      assign.TaskID
	learner bool
	rate    float64 // bytes a second
	grows   float64 // bytes a second that the task writes meanwhile
}

// seconds is how long it takes if nothing changes.
func (x restore) seconds() float64 {
	if x.m.lacks[x.id] <= x.negligible() {
		return 0
	}
	if x.rate <= x.grows {
		return never
	}
	return x.m.lacks[x.id] / (x.rate - x.grows)
}

// negligible is what is lacking to rounding, in bytes.
func (x restore) negligible() float64 { return x.rate*1e-6 + 1e-3 }

// advance restores for a time, and reports whether the state is complete then.
func (x restore) advance(seconds float64) bool {
	x.m.lacks[x.id] -= (x.rate - x.grows) * seconds
	if x.m.lacks[x.id] > x.negligible() {
		return false
	}
	x.m.lacks[x.id] = 0
	return true
}

// leastShare is the share of its restore rate that a member has left under any load: learners have a bandwidth of
// their own.
const leastShare = 0.1

// restoring lists what is being restored, members in order of name. A member's restore rate is what its load
// leaves of it; copies that have caught up take what their tasks write, and the others share the rest evenly.
func (r *run) restoring() (all []restore) {
	running := r.running()
	for _, name := range r.names() {
		m := r.members[name]
		first := len(all)
		for _, id := range m.report.Owned {
			if r.missing(m, id) > 0 {
				all = append(all, restore{m: m, id: id})
			}
		}
		rate := r.restoreRate * max(leastShare, 1-r.utilisation(m))
		for _, c := range m.report.Standby {
			rate -= r.writes(c.Task, running)
		}
		for _, c := range m.report.Learning {
			if m.done[c.Task] {
				rate -= r.writes(c.Task, running)
				continue
			}
			all = append(all, restore{m: m, id: c.Task, learner: true, grows: r.writes(c.Task, running)})
		}
		for i := first; i < len(all); i++ {
			all[i].rate = max(0, rate) / float64(len(all)-first)
			m.lacks[all[i].id] = r.missing(m, all[i].id)
		}
	}
	return all
}

// utilisation is the share of a member that its tasks need; above 1 it falls behind.
func (r *run) utilisation(m *member) (sum float64) {
	for _, id := range m.report.Owned {
		sum += r.tasks[id.Partition].load
	}
	return sum / float64(max(1, m.report.Capacity))
}

// writes is what a task adds to its changelog, in bytes a second: nothing while nobody runs it.
func (r *run) writes(id assign.TaskID, running map[assign.TaskID]bool) float64 {
	if !running[id] {
		return 0
	}
	return r.tasks[id.Partition].changes
}

// running are the tasks that somebody runs: owned, with all of their state.
func (r *run) running() map[assign.TaskID]bool {
	running := make(map[assign.TaskID]bool, len(r.tasks))
	for _, m := range r.members {
		for _, id := range m.report.Owned {
			if r.missing(m, id) <= 0 {
				running[id] = true
			}
		}
	}
	return running
}

// pass adds up what the given time costs, while nothing happens, and lets copies grow old.
func (r *run) pass(seconds float64, at []restore) {
	if seconds == 0 {
		return
	}
	running := r.running()
	cost := &r.cost
	if len(at) > 0 || r.blocked() || len(r.triggers) > 0 || r.waiting() {
		cost.busy += seconds
	}
	for _, name := range r.names() {
		m := r.members[name]
		cost.learning += seconds * float64(len(m.report.Learning))
		u := r.utilisation(m)
		cost.peak = max(cost.peak, u)
		if u > 1+1e-9 {
			cost.overload += seconds
		}
	}
	for _, x := range at {
		cost.restored += seconds * x.rate
	}
	for i := range r.tasks {
		id := assign.TaskID{Partition: int32(i)}
		if running[id] {
			delete(cost.down, id)
			continue
		}
		cost.down[id] += seconds
		cost.gap += seconds
		cost.longest = max(cost.longest, cost.down[id])
	}
	if r.anyChanges {
		r.age(seconds, running)
	}
}

// waiting tells whether a learner has caught up and waits for others.
func (r *run) waiting() bool {
	for _, m := range r.members {
		if len(m.report.Learning) > 0 {
			return true
		}
	}
	return false
}

// age lets copies that nobody writes to fall behind, by no more than the state's size, and those that have caught up
// follow.
func (r *run) age(seconds float64, running map[assign.TaskID]bool) {
	old := func(lacks map[assign.TaskID]float64, fresh func(assign.TaskID) bool) {
		for id := range lacks {
			if grown := seconds * r.writes(id, running); !fresh(id) {
				lacks[id] = min(r.size(id), lacks[id]+grown)
			}
		}
	}
	for _, name := range r.names() {
		m := r.members[name]
		at := make(map[assign.TaskID]bool)
		for _, id := range m.report.Owned {
			at[id] = true
		}
		for _, c := range m.report.Learning {
			if at[c.Task] = true; m.done[c.Task] {
				r.cost.restored += seconds * r.writes(c.Task, running)
			}
		}
		for _, c := range m.report.Standby {
			at[c.Task] = true
			r.cost.restored += seconds * r.writes(c.Task, running)
		}
		old(m.lacks, func(id assign.TaskID) bool { return at[id] })
	}
	for _, disk := range r.gone {
		old(disk, func(assign.TaskID) bool { return false })
	}
}
