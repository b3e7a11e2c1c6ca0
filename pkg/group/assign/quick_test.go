package assign

import (
	"cmp"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestRandom plans from random reports, most of them such as correct members would never make, and checks
// each plan against the rules; then lets perfect members follow, with copies becoming ready in random
// order, until the group rests.
func TestRandom(t *testing.T) {
	for seed := range seeds(10_000) {
		r := rand.New(rand.NewSource(int64(seed)))
		in := randomInput(r)
		if err := toRest(r, in); err != "" {
			t.Fatalf("seed %d: %s", seed, err)
		}
	}
}

func seeds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// TestFixpoint checks rule 7 to the letter: the round after a plan changes nothing at all, unless a handover
// ends, a member exits, a standby is placed or called to learn, or a task had two learners.
func TestFixpoint(t *testing.T) {
	for seed := range seeds(30_000) {
		in := randomInput(rand.New(rand.NewSource(int64(seed))))
		in.Policy.Standbys = 0
		learned := make(map[TaskID]bool)
		for i := range in.Members {
			m := &in.Members[i]
			m.Learning = slices.DeleteFunc(m.Learning, func(c Copy) bool {
				second := learned[c.Task]
				learned[c.Task] = true
				return second
			})
			m.Releasing, m.Taking, m.Standby, m.Instance = nil, nil, nil, ""
		}
		plan := Assign(in)
		if !Rests(in, plan) && !hands(plan) {
			next := Follow(in, plan)
			t.Fatalf("seed %d:\n%s\n%s", seed, describe(in, plan), describe(next, Assign(next)))
		}
	}
}

func hands(plan Plan) bool {
	for _, p := range plan {
		if len(p.Take) > 0 {
			return true
		}
	}
	return false
}

// unpaid is how many rounds may follow each other without a learner that became ready: one for members that
// exit and handovers that end, one for what they leave to do.
const unpaid = 2

// toRest returns what goes wrong on the way, if anything.
func toRest(r *rand.Rand, in Input) string {
	free := unpaid
	for rounds := 0; ; rounds++ {
		plan := Assign(in)
		if v := violations(in, plan); len(v) > 0 {
			return fmt.Sprintf("round %d: %s\n%s", rounds, strings.Join(v, "\n"), describe(in, plan))
		}
		r.Shuffle(len(in.Members), func(i, j int) { in.Members[i], in.Members[j] = in.Members[j], in.Members[i] })
		if again := Assign(in); !reflect.DeepEqual(plan, again) {
			return fmt.Sprintf("rule 9: another order of members, another plan:\n%s\n%s", describe(in, plan), describe(in, again))
		}
		next := Follow(in, plan)
		if !Rests(in, plan) {
			if free--; free < 0 {
				return fmt.Sprintf("rule 7: no rest:\n%s\n%s", describe(in, plan), describe(next, Assign(next)))
			}
			in = next
			continue
		}
		free = unpaid
		if !makeReady(r, next) {
			return resting(next, Assign(next))
		}
		in = next
	}
}

// resting checks what must be true at the end.
func resting(in Input, plan Plan) string {
	o := &oracle{in: in, plan: plan, byID: make(map[string]*Member)}
	count := make(map[string][2]int64)
	for i := range in.Members {
		m := &in.Members[i]
		o.byID[m.ID] = m
		if o.anyStays() && !o.stays(m) && len(m.Owned) > 0 {
			return fmt.Sprintf("at rest, %s has tasks and does not stay:\n%s", m.ID, describe(in, plan))
		}
		var n [2]int64
		for _, t := range in.Tasks {
			if slices.Contains(m.Owned, t.ID) {
				n[1]++
				if t.Stateful {
					n[0]++
				}
			}
		}
		count[m.ID] = n
	}
	factor := int64(max(in.Policy.BalancingFactor, 2))
	for _, a := range in.Members {
		for _, b := range in.Members {
			if !o.stays(&a) || !o.stays(&b) {
				continue
			}
			ca, cb := int64(max(a.Capacity, 1)), int64(max(b.Capacity, 1))
			stateless := count[a.ID][1] > count[a.ID][0]
			if d := count[a.ID][0]*cb - count[b.ID][0]*ca; d >= factor*ca*cb {
				return fmt.Sprintf("rule 6: at rest, stateful tasks of %s and %s are apart:\n%s", a.ID, b.ID, describe(in, plan))
			}
			if d := count[a.ID][1]*cb - count[b.ID][1]*ca; stateless && d >= factor*ca*cb {
				return fmt.Sprintf("rule 6: at rest, totals of %s and %s are apart:\n%s", a.ID, b.ID, describe(in, plan))
			}
		}
	}
	if err := standbysWrong(o, in); err != "" {
		return err + "\n" + describe(in, plan)
	}
	return classesApart(o, in, plan)
}

// standbysWrong checks the number of standbys, and that none had better be in another rack whose members have no more to do.
func standbysWrong(o *oracle, in Input) string {
	load := func(m *Member) float64 {
		return float64(len(m.Owned)+len(m.Standby)) / float64(max(m.Capacity, 1))
	}
	for _, t := range in.Tasks {
		if !t.Stateful {
			continue
		}
		var free, holders, standbys []*Member
		for _, m := range o.sorted() {
			switch {
			case slices.Contains(m.Owned, t.ID):
				holders = append(holders, m)
			case has(m.Standby, t.ID):
				holders, standbys = append(holders, m), append(standbys, m)
			case o.stays(m) && !o.shuns(m, t.ID):
				free = append(free, m)
			}
		}
		if len(standbys) != in.Policy.Standbys && (len(free) > 0 || len(standbys) > in.Policy.Standbys) {
			return fmt.Sprintf("at rest, %s has %d standbys", t.ID, len(standbys))
		}
		inRack := func(rack string, without *Member) (n int) {
			for _, m := range holders {
				if m.Rack == rack && m != without {
					n++
				}
			}
			return n
		}
		for _, s := range standbys {
			for _, to := range free {
				least := slices.MinFunc(free, func(a, b *Member) int { return cmp.Compare(load(a), load(b)) })
				after := min(load(least), load(s)-1/float64(max(s.Capacity, 1)))
				if inRack(to.Rack, s) < inRack(s.Rack, s) && load(to)-after < float64(max(in.Policy.BalancingFactor, 2))-1e-9 {
					return fmt.Sprintf("at rest, the standby of %s on %s had better be on %s", t.ID, s.ID, to.ID)
				}
			}
		}
	}
	return ""
}

// classesApart checks that members of one capacity have as many tasks of each subtopology.
func classesApart(o *oracle, in Input, plan Plan) string {
	count := func(m *Member, of Task) (n int) {
		for _, t := range in.Tasks {
			if t.ID.Subtopology == of.ID.Subtopology && t.Stateful == of.Stateful && slices.Contains(m.Owned, t.ID) {
				n++
			}
		}
		return n
	}
	var staying []*Member
	for _, m := range o.sorted() {
		if o.stays(m) {
			staying = append(staying, m)
		}
	}
	for _, m := range staying {
		if max(m.Capacity, 1) != max(staying[0].Capacity, 1) {
			return ""
		}
	}
	factor := float64(max(in.Policy.BalancingFactor, 2))
	for _, a := range staying {
		for _, b := range staying {
			for _, t := range in.Tasks {
				if d := float64(count(a, t)-count(b, t)) / float64(max(a.Capacity, 1)); d >= factor {
					return fmt.Sprintf("at rest, %s and %s are apart in tasks like %s:\n%s", a.ID, b.ID, t.ID, describe(in, plan))
				}
			}
		}
	}
	return ""
}

// makeReady lets some copies at work become ready; false if there are none.
func makeReady(r *rand.Rand, in Input) bool {
	var at []func()
	for i := range in.Members {
		m := &in.Members[i]
		for _, c := range slices.Concat(m.Learning, m.Standby) {
			if !slices.Contains(m.Ready, c.Task) {
				at = append(at, func() { m.Ready = append(m.Ready, c.Task) })
			}
		}
	}
	r.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
	for i := range at {
		if at[i](); r.Intn(2) == 0 {
			break
		}
	}
	return len(at) > 0
}

func randomInput(r *rand.Rand) Input {
	in := Input{Generation: 10 + r.Int31n(3)}
	in.Policy.BalancingFactor = r.Intn(4)
	if r.Intn(2) == 0 {
		in.Policy.MaxLearners = r.Intn(3)
	}
	if r.Intn(3) == 0 {
		in.Policy.Standbys = r.Intn(3)
	}
	tasks, members := 1+r.Intn(9), 1+r.Intn(6)
	stateless, racks := r.Intn(2), max(0, r.Intn(5)-1)
	for t := range tasks {
		task := Task{ID: TaskID{int32(r.Intn(2)), int32(t)}, Stateful: stateless == 0 || r.Intn(3) > 0}
		for _, rack := range []string{"a", "b"} {
			if racks > 0 && r.Intn(2) == 0 {
				task.Racks = append(task.Racks, rack)
			}
		}
		in.Tasks = append(in.Tasks, task)
	}
	for m := range members {
		x := Member{ID: fmt.Sprintf("m%d", m)}
		x.Leaving = r.Intn(4) == 0
		x.Instance = fmt.Sprintf("i%d", m)
		if racks > 0 {
			x.Rack = []string{"a", "b", ""}[r.Intn(racks)]
		}
		if r.Intn(10) == 0 {
			x.Instance = "i0"
			x.Incarnation = Incarnation{StartMs: r.Int63n(2), Starts: uint32(r.Intn(2))}
		}
		if r.Intn(3) == 0 {
			x.Capacity = uint32(r.Intn(5))
		}
		in.Members = append(in.Members, x)
	}
	wild, stuck := r.Intn(3) == 0, r.Intn(4) == 0
	for _, t := range in.Tasks {
		pick := func() *Member { return &in.Members[r.Intn(members)] }
		h := func() Handover {
			return Handover{t.ID, ReleaseID{Generation: 7 + r.Int31n(3), Owner: fmt.Sprintf("m%d", r.Intn(members+1))}}
		}
		if r.Intn(6) > 0 {
			m := pick()
			if r.Intn(6) == 0 {
				m.Releasing = append(m.Releasing, h())
			} else {
				m.Owned = append(m.Owned, t.ID)
			}
		}
		if r.Intn(6) == 0 {
			m := pick()
			m.Taking = append(m.Taking, h())
		}
		for n := r.Intn(3); n > 0; n-- {
			m, c := pick(), Copy{t.ID, r.Int63n(3)}
			switch r.Intn(3) {
			case 0:
				m.Learning = append(m.Learning, c)
				if r.Intn(3) == 0 {
					m.Ready = append(m.Ready, t.ID)
				}
			case 1:
				m.Standby = append(m.Standby, c)
				if r.Intn(3) == 0 {
					m.Ready = append(m.Ready, t.ID)
				}
			default:
				m.Local = append(m.Local, c)
			}
		}
		if stuck && t.Stateful && r.Intn(4) == 0 {
			m := pick()
			m.Stuck = append(m.Stuck, t.ID)
		}
		if wild && r.Intn(2) == 0 {
			m := pick()
			switch r.Intn(3) {
			case 0:
				m.Owned = append(m.Owned, t.ID)
			case 1:
				m.Releasing = append(m.Releasing, h())
			default:
				m.Taking = append(m.Taking, h(), h())
			}
		}
		if wild && r.Intn(8) == 0 {
			m := pick()
			m.Owned = append(m.Owned, TaskID{-1, r.Int31n(5)})
			m.Learning = append(m.Learning, Copy{TaskID{9, 9}, -1})
			m.Ready = append(m.Ready, TaskID{9, 9}, t.ID)
		}
	}
	return in
}

func describe(in Input, plan Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d %+v, tasks %v\n", in.Generation, in.Policy, in.Tasks)
	members := slices.Clone(in.Members)
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	for _, m := range members {
		fmt.Fprintf(&b, "  %s rack %q cap %d leaving %v: owned %v releasing %v taking %v learning %v ready %v standby %v local %v stuck %v\n", m.ID, m.Rack, m.Capacity, m.Leaving, m.Owned, m.Releasing, m.Taking, m.Learning, m.Ready, m.Standby, m.Local, m.Stuck)
		p := plan[m.ID]
		fmt.Fprintf(&b, "     -> own %v take %v release %v learn %v standby %v superseded %v\n", p.Own, p.Take, p.Release, p.Learn, p.Standby, p.Superseded)
	}
	return b.String()
}
