package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// garble changes a report on its way, as broken rules and lies want it.
func (p *process) garble(r assign.Report) assign.Report {
	w := p.world
	switch {
	case w.breaks(TakingClaimed):
		r.Taking = nil
	case w.breaks(ReleaseOrdered) && r.Leaving:
		r.Owned = nil
	case w.breaks(ClaimsWhatRuns):
		r.Owned = slices.Clone(p.lastPlan.Own)
		for _, h := range p.lastPlan.Take {
			r.Owned = append(r.Owned, h.Task)
		}
	}
	if p.lies {
		p.lies, w.unfenced = false, true
		r = w.lieAbout(r, p.member, false)
	}
	return r
}

// lieAbout adds false claims to a report. Unless it may be any, a claim to run a task is made of tasks only that
// the member does run, or that do not exist: of two members that claim to own one task, one must be told to
// stop, and if it misses that plan, and the other dies, it goes on behind what the other has committed.
func (w *world) lieAbout(r assign.Report, member string, any bool) assign.Report {
	own := r.Owned
	r.Owned, r.Releasing, r.Taking = slices.Clone(r.Owned), slices.Clone(r.Releasing), slices.Clone(r.Taking)
	r.Learning, r.Ready, r.Standby = slices.Clone(r.Learning), slices.Clone(r.Ready), slices.Clone(r.Standby)
	for range 1 + w.rng.IntN(3) {
		t := w.tasks[w.rng.IntN(len(w.tasks))].id
		unknown := w.chance(0.1)
		if unknown {
			t.Partition += 100
		}
		runs := t
		if len(own) > 0 && !any && !unknown {
			runs = own[w.rng.IntN(len(own))]
		}
		h := assign.Handover{Task: runs, Release: assign.ReleaseID{Generation: w.group.gen - int32(w.rng.IntN(3)), Owner: member}}
		kind := w.rng.IntN(6)
		if len(own) == 0 && !any && !unknown {
			kind = 3 + w.rng.IntN(3)
		}
		switch kind {
		case 0:
			r.Owned = append(r.Owned, runs)
		case 1:
			r.Releasing = append(r.Releasing, h)
		case 2:
			r.Taking = append(r.Taking, h)
		case 3:
			r.Learning = append(r.Learning, assign.Copy{Task: t, Position: int64(w.rng.IntN(100)) - 5})
		case 4:
			r.Ready = append(r.Ready, t)
		case 5:
			r.Standby = append(r.Standby, assign.Copy{Task: t, Position: 1 << 40})
		}
	}
	return r
}

// checkLies plans from reports full of lies of any kind. Nobody acts on that plan; it only has to have a shape.
func (w *world) checkLies(in assign.Input) {
	in.Members = slices.Clone(in.Members)
	for i := range in.Members {
		in.Members[i].Report = w.lieAbout(in.Members[i].Report, in.Members[i].ID, true)
	}
	plan := assign.Assign(in)
	w.checkOrderOfMembers(in, plan)
	told := w.ordersOf(plan)
	for _, t := range w.tasks {
		w.checkShape(t, told[t.id])
	}
}
