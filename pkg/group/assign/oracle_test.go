package assign

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// oracle checks a plan against the rules, naively and from the reports alone. It knows nothing of how the
// plan was made.
type oracle struct {
	in    Input
	plan  Plan
	byID  map[string]*Member
	found []string
}

func violations(in Input, plan Plan) []string {
	o := &oracle{in: in, plan: plan, byID: make(map[string]*Member)}
	for i := range in.Members {
		o.byID[in.Members[i].ID] = &in.Members[i]
	}
	o.members()
	for _, t := range in.Tasks {
		o.task(t)
	}
	return o.found
}

func (o *oracle) fail(format string, args ...any) {
	o.found = append(o.found, fmt.Sprintf(format, args...))
}

func (o *oracle) stays(m *Member) bool { return !m.Leaving && !o.superseded(m) }

func (o *oracle) superseded(m *Member) bool {
	for i := range o.in.Members {
		x := &o.in.Members[i]
		if m.Instance == "" || x == m || x.Instance != m.Instance {
			continue
		}
		if c := x.Incarnation.Compare(m.Incarnation); c > 0 || c == 0 && x.ID < m.ID {
			return true
		}
	}
	return false
}

func (o *oracle) anyStays() bool {
	for i := range o.in.Members {
		if o.stays(&o.in.Members[i]) {
			return true
		}
	}
	return false
}

func (o *oracle) members() {
	if len(o.plan) != len(o.byID) {
		o.fail("plan for %d members, %d reported", len(o.plan), len(o.byID))
	}
	for id, p := range o.plan {
		m := o.byID[id]
		if m == nil {
			o.fail("plan for %s, which did not report", id)
			continue
		}
		if p.Superseded != o.superseded(m) {
			o.fail("%s: superseded is %v", id, p.Superseded)
		}
		if !o.stays(m) && len(p.Learn)+len(p.Standby) > 0 {
			o.fail("rule 2: %s does not stay and is given copies", id)
		}
		if most := o.in.Policy.MaxLearners; most > 0 && len(p.Learn) > most {
			o.fail("%s has %d learners, max_learners is %d", id, len(p.Learn), most)
		}
		seen := make(map[TaskID]bool)
		for _, list := range [][]TaskID{p.Own, ids(p.Take), ids(p.Release), p.Learn, p.Standby} {
			if !slices.IsSortedFunc(list, TaskID.Compare) {
				o.fail("%s: a list out of order: %v", id, list)
			}
			for _, t := range list {
				if seen[t] {
					o.fail("%s is told two things about %s", id, t)
				}
				seen[t] = true
			}
		}
	}
}

func ids(hs []Handover) []TaskID {
	var out []TaskID
	for _, h := range hs {
		out = append(out, h.Task)
	}
	return out
}

// told is what a plan says about one task: member ids.
type told struct {
	own, take, release, learn, standby []string
	taken, released                    []ReleaseID
}

func (o *oracle) told(id TaskID) (w told) {
	for m, p := range o.plan {
		for _, h := range p.Take {
			if h.Task == id {
				w.take, w.taken = append(w.take, m), append(w.taken, h.Release)
			}
		}
		for _, h := range p.Release {
			if h.Task == id {
				w.release, w.released = append(w.release, m), append(w.released, h.Release)
			}
		}
		for _, x := range []struct {
			list []TaskID
			to   *[]string
		}{{p.Own, &w.own}, {p.Learn, &w.learn}, {p.Standby, &w.standby}} {
			if slices.Contains(x.list, id) {
				*x.to = append(*x.to, m)
			}
		}
	}
	return w
}

// holder is the member whose claim to a task stands, and the identity of its release if it is releasing.
func (o *oracle) holder(id TaskID) (holder *Member, releasing *ReleaseID) {
	for _, m := range o.sorted() {
		if slices.Contains(m.Owned, id) {
			return m, nil
		}
	}
	for _, m := range o.sorted() {
		for _, h := range m.Releasing {
			if h.Task == id && (releasing == nil || h.Release.Generation > releasing.Generation) {
				holder, releasing = m, &h.Release
			}
		}
	}
	return holder, releasing
}

func (o *oracle) taker(id TaskID, holder *Member) (taker *Member) {
	newest := int32(0)
	for _, m := range o.sorted() {
		for _, h := range m.Taking {
			if h.Task == id && m != holder && (taker == nil || h.Release.Generation > newest) {
				taker, newest = m, h.Release.Generation
			}
		}
	}
	return taker
}

func (o *oracle) sorted() []*Member {
	var out []*Member
	for _, m := range o.byID {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Member) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func has(copies []Copy, id TaskID) bool {
	return slices.ContainsFunc(copies, func(c Copy) bool { return c.Task == id })
}

func isReady(m *Member, id TaskID) bool {
	return slices.Contains(m.Ready, id) && (has(m.Learning, id) || has(m.Standby, id))
}

func (o *oracle) task(t Task) {
	w := o.told(t.ID)
	if len(o.in.Members) == 0 {
		return
	}
	owned := len(w.own) == 1 && len(w.release)+len(w.take) == 0
	moved := len(w.own) == 0 && len(w.release) == 1 && len(w.take) == 1
	if !owned && !moved {
		o.fail("rule 10: %s: own %v, release %v, take %v", t.ID, w.own, w.release, w.take)
		return
	}
	if len(w.learn) > 1 {
		o.fail("%s has learners %v", t.ID, w.learn)
	}
	if !t.Stateful && len(w.learn)+len(w.standby) > 0 {
		o.fail("rule 5: stateless %s has copies %v %v", t.ID, w.learn, w.standby)
	}
	unready := 0
	for _, m := range w.standby {
		if !isReady(o.byID[m], t.ID) {
			unready++
		}
	}
	if n := o.in.Policy.Standbys; len(w.standby) > n && (len(w.standby) > n+unready || !o.racks()) {
		o.fail("%s has standbys %v", t.ID, w.standby)
	}
	o.warm(t, w, unready)
	for _, m := range slices.Concat(w.learn, w.standby) {
		if o.shuns(o.byID[m], t.ID) {
			o.fail("%s: its copy is stuck on %s, which is to keep it", t.ID, m)
		}
	}
	holder, releasing := o.holder(t.ID)
	taker := o.taker(t.ID, holder)
	switch {
	case holder != nil:
		o.claimed(t, w, holder, taker, releasing)
	case taker != nil:
		if !owned || w.own[0] != taker.ID {
			o.fail("%s: nobody holds it, %s is taking, and %v own it", t.ID, taker.ID, w.own)
		}
	default:
		o.unclaimed(t, w)
	}
	if home := o.home(w); t.Stateful && !o.stays(home) && o.anyStays() && o.in.Policy.MaxLearners <= 0 && len(w.learn) != 1 && len(w.release) == 0 {
		o.fail("rule 2: %s ends on %s, which does not stay, and has learners %v", t.ID, home.ID, w.learn)
	}
}

// shuns reports whether the task's copy is stuck on the member, but not on all that stay.
func (o *oracle) shuns(m *Member, id TaskID) bool {
	stuck := func(m *Member) bool { return slices.Contains(m.Stuck, id) && !isReady(m, id) }
	for _, other := range o.byID {
		if o.stays(other) && !stuck(other) {
			return stuck(m)
		}
	}
	return false
}

// warm checks that a standby that is ready stays, although it is in the rack of its task, until one in another rack is ready.
func (o *oracle) warm(t Task, w told, unready int) {
	if len(w.own) != 1 || len(w.learn) > 0 || !o.racks() || len(w.standby) == 0 || unready == 0 || len(w.standby) >= o.in.Policy.Standbys+unready {
		return
	}
	home := o.byID[w.own[0]]
	for _, m := range o.sorted() {
		if m != home && !o.shuns(m, t.ID) && o.stays(m) && m.Rack == home.Rack && isReady(m, t.ID) && has(m.Standby, t.ID) && !has(m.Learning, t.ID) && !slices.Contains(w.standby, m.ID) {
			o.fail("%s: the standby on %s is ready and given up for %v", t.ID, m.ID, w.standby)
		}
	}
}

// racks reports whether members are in several racks. Then a standby that is ready stays until one in a better rack is.
func (o *oracle) racks() bool {
	for _, m := range o.byID {
		if m.Rack != o.in.Members[0].Rack {
			return true
		}
	}
	return false
}

// home is where the task is once the plan is carried out.
func (o *oracle) home(w told) *Member {
	if len(w.own) == 1 {
		return o.byID[w.own[0]]
	}
	return o.byID[w.take[0]]
}

func (o *oracle) claimed(t Task, w told, holder, taker *Member, releasing *ReleaseID) {
	if len(w.own) == 1 {
		if w.own[0] != holder.ID {
			o.fail("rule 1: %s is held by %s and owned by %s", t.ID, holder.ID, w.own[0])
		}
		if taker != nil && (releasing != nil || o.stays(taker)) {
			o.fail("%s: the handover from %s to %s is forgotten", t.ID, holder.ID, taker.ID)
		}
		for i := range o.in.Members {
			if m := &o.in.Members[i]; t.Stateful && m != holder && o.stays(m) && !o.stays(holder) && isReady(m, t.ID) && has(m.Learning, t.ID) {
				o.fail("rule 3: %s is ready on %s and stays on %s", t.ID, m.ID, holder.ID)
			}
		}
		return
	}
	if w.release[0] != holder.ID {
		o.fail("rule 1: %s is held by %s and released by %s", t.ID, holder.ID, w.release[0])
	}
	want := ReleaseID{Generation: o.in.Generation, Owner: holder.ID}
	if releasing != nil {
		want = *releasing
	}
	if w.taken[0] != want || w.released[0] != want {
		o.fail("%s: release identities %v and %v, want %v", t.ID, w.released[0], w.taken[0], want)
	}
	to := o.byID[w.take[0]]
	switch {
	case to == holder:
		o.fail("%s: %s takes from itself", t.ID, to.ID)
	case taker != nil && (releasing != nil || o.stays(taker)):
		if to != taker {
			o.fail("%s: %s was taking, now %s is", t.ID, taker.ID, to.ID)
		}
	case !o.stays(to):
		o.fail("rule 2: %s goes to %s, which does not stay", t.ID, to.ID)
	case t.Stateful && !isReady(to, t.ID):
		o.fail("rule 1: %s goes to %s, which is not ready", t.ID, to.ID)
	}
}

func (o *oracle) unclaimed(t Task, w told) {
	if len(w.own) == 0 {
		o.fail("%s: nobody holds it, and %v releases it", t.ID, w.release)
		return
	}
	to := o.byID[w.own[0]]
	if o.superseded(to) {
		o.fail("%s goes to superseded %s", t.ID, to.ID)
	}
	if !t.Stateful {
		if o.anyStays() && !o.stays(to) {
			o.fail("stateless %s goes to leaving %s", t.ID, to.ID)
		}
		return
	}
	// Not even a copy, then by position, then the ready learners.
	rank := func(m *Member) float64 {
		if slices.Contains(m.Ready, t.ID) && has(m.Learning, t.ID) {
			return math.Inf(1)
		}
		best := math.Inf(-1)
		for _, list := range [][]Copy{m.Learning, m.Standby, m.Local} {
			for _, c := range list {
				if c.Task == t.ID {
					best = max(best, float64(c.Position))
				}
			}
		}
		return best
	}
	for i := range o.in.Members {
		m := &o.in.Members[i]
		if !o.superseded(m) && !o.shuns(m, t.ID) && rank(m) > rank(to) {
			o.fail("rule 4: %s goes to %s, a better copy is on %s", t.ID, to.ID, m.ID)
		}
	}
	if math.IsInf(rank(to), -1) && o.anyStays() && !o.stays(to) {
		o.fail("rule 4: %s goes to leaving %s without a copy", t.ID, to.ID)
	}
}
