package scenario

import (
	"maps"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// member is an instance that does at once what it is told.
type member struct {
	name   string
	spec   memberSpec
	report assign.Report
	// lacks is, of each task that it has state of, on disk or at work, how many bytes are missing. It survives
	// the member.
	lacks   map[assign.TaskID]float64
	done    map[assign.TaskID]bool // learners that have caught up
	crashAt float64                // seconds
}

// newMember starts a member with the state that a former one of that name left behind.
func (s *Scenario) newMember(spec memberSpec, lacks map[assign.TaskID]float64) *member {
	m := &member{name: spec.name, spec: spec, lacks: lacks, done: make(map[assign.TaskID]bool), crashAt: never}
	m.spec.owned, m.spec.learning, m.spec.standby, m.spec.local = nil, nil, nil, nil // what it begins with once
	if lacks == nil {
		m.lacks = make(map[assign.TaskID]float64)
	}
	for _, ids := range [][]assign.TaskID{spec.owned, spec.standby, spec.local} {
		for _, id := range ids {
			m.lacks[id] = 0
		}
	}
	m.report = assign.Report{
		Instance: spec.name,
		Owned:    spec.owned,
		Learning: copiesOf(spec.learning),
		Standby:  copiesOf(spec.standby),
		Capacity: spec.capacity,
		Rack:     spec.rack,
		Labels:   spec.labels,
	}
	held := make(map[assign.TaskID]bool)
	for _, id := range slices.Concat(spec.owned, spec.learning, spec.standby) {
		held[id] = true
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.lacks), assign.TaskID.Compare) {
		if !held[id] {
			m.report.Local = append(m.report.Local, assign.Copy{Task: id})
		}
	}
	return m
}

func (s *Scenario) size(id assign.TaskID) float64 { return s.tasks[id.Partition].size }

// missing is how much of a task's state the member does not have, in bytes.
func (s *Scenario) missing(m *member, id assign.TaskID) float64 {
	if lacks, has := m.lacks[id]; has {
		return lacks
	}
	return s.size(id)
}

func copiesOf(ids []assign.TaskID) []assign.Copy {
	copies := make([]assign.Copy, len(ids))
	for i, id := range ids {
		copies[i].Task = id
	}
	return copies
}

func tasksOf(copies []assign.Copy) []assign.TaskID {
	ids := make([]assign.TaskID, len(copies))
	for i, c := range copies {
		ids[i] = c.Task
	}
	return ids
}

func handedOver(hs []assign.Handover) []assign.TaskID {
	ids := make([]assign.TaskID, len(hs))
	for i, h := range hs {
		ids[i] = h.Task
	}
	return ids
}

// ready lists the learners that the member calls ready: in stable mode all of them or none.
func (m *member) ready(mode Learners) (ids []assign.TaskID) {
	for _, c := range m.report.Learning {
		if m.done[c.Task] {
			ids = append(ids, c.Task)
		} else if mode == Stable {
			return nil
		}
	}
	return ids
}

// reported is the member's report: its copies with their positions, standbys ready because they are taken as
// caught up.
func (s *Scenario) reported(m *member) assign.Report {
	r := m.report
	position := func(copies []assign.Copy) []assign.Copy {
		out := slices.Clone(copies)
		for i, c := range out {
			missing := s.missing(m, c.Task)
			if out[i].Position = int64(s.size(c.Task) - missing); missing <= 0 {
				out[i].Position = assign.Complete
			}
		}
		return out
	}
	r.Learning, r.Standby, r.Local = position(r.Learning), position(r.Standby), position(r.Local)
	r.Ready = append(m.ready(s.learners), tasksOf(r.Standby)...)
	return r
}

// follow carries a plan out. next is the report that follows from it. A standby is taken as caught up at once.
func (r *run) follow(m *member, plan assign.MemberPlan, next assign.Report) {
	m.report = next
	for _, id := range plan.Standby {
		r.bring(m, id)
	}
	for _, id := range handedOver(plan.Take) {
		m.lacks[id] = 0
	}
	maps.DeleteFunc(m.done, func(id assign.TaskID, _ bool) bool { return !slices.Contains(plan.Learn, id) })
}

// bring gives a member at once what it lacks of a task's state.
func (r *run) bring(m *member, id assign.TaskID) {
	r.cost.restored += r.missing(m, id)
	m.lacks[id] = 0
}
