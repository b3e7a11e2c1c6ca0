package sim

import (
	"reflect"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// orders is what a plan says about one task, by member id.
type orders struct {
	own, take, release, learn, standby []string
	taken, released                    assign.ReleaseID
}

// claims is what the members' machines said about one task, whatever became of it on the way to the leader.
type claims struct {
	owned, releasing, taking []*member
	releaseIDs               map[string]assign.ReleaseID
	ready                    []*member // copies that are caught up
	learners                 []*member // the learners among these
	copies                   []*member
}

// checkPlan demands of a plan, task by task:
//
//	rule 1   an owner that lives keeps its task or releases it to one that is ready or was told to take it before
//	rule 2   a leaving member is given nothing new; each of its stateful tasks gets one learner, if there is room
//	rule 3   a ready learner of a leaving member's task takes it in this round
//	rule 4   an unclaimed task goes to its ready learner, else to a copy, else to one that stays; a repeated
//	         order keeps its identity, and one under way is not undone
//	rule 5   stateless tasks have no copies
//	rule 10  one own, or one release with one take; at most one learner; one role per member
func (w *world) checkPlan(plan assign.Plan) {
	for id := range plan {
		if w.group.find(id) == nil {
			w.fail("rule 10", "generation %d: orders for %s, which is no member", w.group.gen, id)
		}
	}
	told := w.ordersOf(plan)
	for _, t := range w.tasks {
		w.checkShape(t, told[t.id])
		w.checkLeaving(t, told[t.id])
		if w.violation == nil && !w.unfenced {
			w.checkClaims(t, told[t.id])
		}
		if w.violation != nil {
			return
		}
	}
}

func (w *world) ordersOf(plan assign.Plan) map[assign.TaskID]*orders {
	told := map[assign.TaskID]*orders{}
	for _, t := range w.tasks {
		told[t.id] = &orders{}
	}
	for _, m := range w.group.members {
		mp := plan[m.id]
		for _, t := range mp.Own {
			told[t].own = append(told[t].own, m.id)
		}
		for _, h := range mp.Take {
			told[h.Task].take, told[h.Task].taken = append(told[h.Task].take, m.id), h.Release
		}
		for _, h := range mp.Release {
			told[h.Task].release, told[h.Task].released = append(told[h.Task].release, m.id), h.Release
		}
		for _, t := range mp.Learn {
			told[t].learn = append(told[t].learn, m.id)
		}
		for _, t := range mp.Standby {
			told[t].standby = append(told[t].standby, m.id)
		}
	}
	return told
}

// checkOrderOfMembers demands rule 9: the order of members does not matter.
func (w *world) checkOrderOfMembers(in assign.Input, plan assign.Plan) {
	in.Members = slices.Clone(in.Members)
	slices.Reverse(in.Members)
	if again := assign.Assign(in); !reflect.DeepEqual(plan, again) {
		w.fail("rule 9", "generation %d: the members in another order give another plan: %v and %v", in.Generation, plan, again)
	}
}

// checkShape demands what holds whatever the members claimed.
func (w *world) checkShape(t *task, o *orders) {
	one := len(o.own) == 1 && len(o.release) == 0 && len(o.take) == 0
	move := len(o.own) == 0 && len(o.release) == 1 && len(o.take) == 1
	switch {
	case !one && !move:
		w.fail("rule 10", "task %s: own %v release %v take %v", t.id, o.own, o.release, o.take)
	case move && o.taken != o.released:
		w.fail("rule 10", "task %s is released as %v and taken as %v", t.id, o.released, o.taken)
	case len(o.learn) > 1:
		w.fail("rule 10", "task %s has the learners %v", t.id, o.learn)
	case len(o.standby) > w.policy.Standbys+w.replacing():
		w.fail("rule 10", "task %s has the standbys %v, of %d", t.id, o.standby, w.policy.Standbys)
	case !t.stateful && len(o.learn)+len(o.standby) > 0:
		w.fail("rule 5", "stateless task %s has copies on %v %v", t.id, o.learn, o.standby)
	}
	all := slices.Concat(o.own, o.take, o.release, o.learn, o.standby)
	slices.Sort(all)
	if n := len(all); n != len(slices.Compact(all)) {
		w.fail("rule 10", "task %s: a member has two roles: %+v", t.id, *o)
	}
}

// checkLeaving: who does not stay is given nothing new.
func (w *world) checkLeaving(t *task, o *orders) {
	for _, m := range w.group.members {
		if w.stays(m) {
			continue
		}
		if slices.Contains(o.learn, m.id) || slices.Contains(o.standby, m.id) {
			w.fail("rule 2", "%s does not stay and is given a copy of task %s", m.id, t.id)
		}
		taking := slices.ContainsFunc(m.report.Taking, func(h assign.Handover) bool { return h.Task == t.id })
		if slices.Contains(o.take, m.id) && !taking {
			w.fail("rule 2", "%s does not stay and is told to take task %s", m.id, t.id)
		}
	}
}

func (w *world) claimsOf(t *task) claims {
	c := claims{releaseIDs: map[string]assign.ReleaseID{}}
	copyOf := func(list []assign.Copy) bool {
		return slices.ContainsFunc(list, func(c assign.Copy) bool { return c.Task == t.id })
	}
	for _, m := range w.group.members {
		r := &m.truth
		if slices.Contains(r.Owned, t.id) {
			c.owned = append(c.owned, m)
		}
		for _, h := range r.Releasing {
			if h.Task == t.id {
				c.releasing = append(c.releasing, m)
				c.releaseIDs[m.id] = h.Release
			}
		}
		if slices.ContainsFunc(r.Taking, func(h assign.Handover) bool { return h.Task == t.id }) {
			c.taking = append(c.taking, m)
		}
		if slices.Contains(r.Ready, t.id) {
			c.ready = append(c.ready, m)
			if copyOf(r.Learning) {
				c.learners = append(c.learners, m)
			}
		}
		if (copyOf(r.Learning) || copyOf(r.Standby) || copyOf(r.Local)) && !w.superseded(m) && !w.shuns(t, m) {
			c.copies = append(c.copies, m)
		}
	}
	return c
}

// replacing is how many standbys more a task may have: for each of them one in a better rack that is not ready yet. (At rest the number is exact,
// see checkTaskAtRest.)
func (w *world) replacing() int {
	if !w.racks {
		return 0
	}
	return w.policy.Standbys
}

// shuns says whether a copy is stuck there, as the member says, and not on all that stay.
func (w *world) shuns(t *task, m *member) bool {
	stuck := func(m *member) bool {
		return slices.Contains(m.truth.Stuck, t.id) && !slices.Contains(m.truth.Ready, t.id)
	}
	return stuck(m) && slices.ContainsFunc(w.group.members, func(o *member) bool { return w.stays(o) && !stuck(o) })
}

func (w *world) checkClaims(t *task, o *orders) {
	c := w.claimsOf(t)
	if len(c.owned) > 1 {
		w.fail("one owner", "task %s is claimed as owned by %s and %s", t.id, c.owned[0].id, c.owned[1].id)
		return
	}
	switch {
	case len(c.owned) == 1:
		w.checkOwned(t, o, c)
	case len(c.releasing) == 1 && len(c.taking) == 1:
		if !slices.Contains(o.release, c.releasing[0].id) || !slices.Contains(o.take, c.taking[0].id) || o.released != c.releaseIDs[c.releasing[0].id] {
			w.fail("rule 4", "the handover of task %s from %s to %s as %v is under way; the plan says %+v",
				t.id, c.releasing[0].id, c.taking[0].id, c.releaseIDs[c.releasing[0].id], *o)
		}
	case len(c.releasing) == 1 && slices.Contains(o.release, c.releasing[0].id):
		if o.released != c.releaseIDs[c.releasing[0].id] {
			w.fail("rule 4", "task %s: the repeated order of %s changes its identity from %v to %v",
				t.id, c.releasing[0].id, c.releaseIDs[c.releasing[0].id], o.released)
		}
	case len(c.releasing) == 0 && len(c.taking) > 0:
		if !slices.ContainsFunc(c.taking, func(m *member) bool { return slices.Contains(o.own, m.id) }) {
			w.fail("rule 4", "task %s has no owner and a taker; the plan says %+v", t.id, *o)
		}
	case len(c.releasing) == 0:
		w.checkUnclaimed(t, o, c)
	}
}

// checkOwned: the task of an owner that lives.
func (w *world) checkOwned(t *task, o *orders, c claims) {
	owner := c.owned[0]
	if slices.Contains(o.own, owner.id) {
		if w.stays(owner) || !t.stateful {
			return
		}
		if i := slices.IndexFunc(c.learners, w.stays); i >= 0 {
			w.fail("rule 3", "task %s of %s, which leaves, has the ready learner %s and does not move", t.id, owner.id, c.learners[i].id)
		}
		if len(o.learn) == 0 && w.policy.MaxLearners == 0 && slices.ContainsFunc(w.group.members, w.stays) {
			w.fail("rule 2", "task %s of %s, which leaves, has no learner", t.id, owner.id)
		}
		return
	}
	if !slices.Contains(o.release, owner.id) {
		w.fail("rule 1", "task %s runs on %s; the plan says %+v", t.id, owner.id, *o)
		return
	}
	taker := w.group.find(o.take[0])
	if !t.stateful || slices.Contains(c.taking, taker) {
		return
	}
	if !slices.Contains(c.ready, taker) {
		w.fail("rule 1", "task %s goes from %s to %s, which is not ready", t.id, owner.id, taker.id)
	} else if !taker.proc.caughtUp[t.index] && taker.proc.running() && taker.proc.member == taker.id {
		w.fail("ready when caught up", "task %s goes from %s to %s, which has never been within the acceptable lag", t.id, owner.id, taker.id)
	}
}

// checkUnclaimed: nobody runs the task or is about to.
func (w *world) checkUnclaimed(t *task, o *orders, c claims) {
	if len(o.own) == 0 {
		w.fail("rule 4", "task %s is unclaimed; the plan says %+v", t.id, *o)
		return
	}
	m := w.group.find(o.own[0])
	switch {
	case !t.stateful || len(c.copies) == 0:
		if !w.stays(m) && slices.ContainsFunc(w.group.members, w.stays) {
			w.fail("rule 2", "unclaimed task %s goes to %s, which does not stay", t.id, m.id)
		}
	case slices.ContainsFunc(c.learners, w.stays) && !slices.Contains(c.learners, m):
		w.fail("rule 4", "unclaimed task %s goes to %s, not to its ready learner", t.id, m.id)
	case !slices.Contains(c.copies, m):
		w.fail("rule 4", "unclaimed task %s goes to %s, which has no copy of it", t.id, m.id)
	}
}

// superseded: a later incarnation of the same instance is in the group.
func (w *world) superseded(m *member) bool {
	return slices.ContainsFunc(w.group.members, func(o *member) bool {
		return o != m && o.report.Instance == m.report.Instance && o.report.Incarnation.Compare(m.report.Incarnation) > 0
	})
}

func (w *world) stays(m *member) bool { return !m.report.Leaving && !w.superseded(m) }
