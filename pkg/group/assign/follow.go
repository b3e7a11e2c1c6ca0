package assign

import (
	"math"
	"slices"
)

// Complete is the position of a copy that lacks nothing, as far as Follow can know.
const Complete = math.MaxInt64

// Follow is the next round's input if every member carries its plan out and nothing else happens:
// handovers end, copies start at the position of what the member has on disk, ready ones stay ready, and
// superseded members exit.
func Follow(in Input, plan Plan) Input {
	next := Input{Generation: in.Generation + 1, Tasks: in.Tasks, Policy: in.Policy}
	for i := range in.Members {
		if p := plan[in.Members[i].ID]; !p.Superseded {
			next.Members = append(next.Members, Member{ID: in.Members[i].ID, Report: follow(&in.Members[i].Report, &p)})
		}
	}
	return next
}

func follow(r *Report, p *MemberPlan) Report {
	held := make(map[TaskID]int64)
	hold := func(list []Copy) {
		for _, c := range list {
			held[c.Task] = max(held[c.Task], c.Position)
		}
	}
	hold(r.Learning)
	hold(r.Standby)
	ready := make(map[TaskID]bool)
	for _, id := range r.Ready {
		_, ready[id] = held[id]
	}
	hold(r.Local)
	next := *r
	next.Releasing, next.Taking, next.Ready, next.Local = nil, nil, nil, nil
	next.Owned = slices.Clone(p.Own)
	for _, h := range p.Take {
		next.Owned = append(next.Owned, h.Task)
	}
	slices.SortFunc(next.Owned, TaskID.Compare)
	copies := func(ids []TaskID) (list []Copy) {
		for _, id := range ids {
			list = append(list, Copy{Task: id, Position: held[id]})
			if delete(held, id); ready[id] {
				next.Ready = append(next.Ready, id)
			}
		}
		return list
	}
	next.Learning, next.Standby = copies(p.Learn), copies(p.Standby)
	slices.SortFunc(next.Ready, TaskID.Compare)
	for _, id := range next.Owned {
		delete(held, id)
	}
	for _, h := range p.Release {
		held[h.Task] = Complete
	}
	for id, position := range held {
		next.Local = append(next.Local, Copy{Task: id, Position: position})
	}
	slices.SortFunc(next.Local, func(a, b Copy) int { return a.Task.Compare(b.Task) })
	return next
}

// Changes reports whether carrying the plan out changes anything: who runs, learns or keeps what.
func Changes(in Input, plan Plan) bool {
	for i := range in.Members {
		r, p := &in.Members[i].Report, plan[in.Members[i].ID]
		if p.Superseded || len(p.Take)+len(p.Release)+len(r.Releasing)+len(r.Taking) > 0 || !sameTasks(r.Owned, p.Own) ||
			!sameTasks(copiedTasks(r.Learning), p.Learn) || !sameTasks(copiedTasks(r.Standby), p.Standby) {
			return true
		}
	}
	return false
}

// Rests reports whether another round, with no further event, would change nothing: a take that became an
// own and a release that ended are no change.
func Rests(in Input, plan Plan) bool {
	next := Follow(in, plan)
	return len(next.Members) == len(in.Members) && !Changes(next, Assign(next))
}

func copiedTasks(copies []Copy) []TaskID {
	ids := make([]TaskID, len(copies))
	for i, c := range copies {
		ids[i] = c.Task
	}
	return ids
}

// sameTasks compares tasks reported in any order with tasks planned.
func sameTasks(reported, planned []TaskID) bool {
	if !slices.IsSortedFunc(reported, TaskID.Compare) {
		reported = slices.SortedFunc(slices.Values(reported), TaskID.Compare)
	}
	return slices.Equal(reported, planned)
}
