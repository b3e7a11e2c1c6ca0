package scenario

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The least that a group has to do, by exhaustive search: at each event all ends that are lawful for the policy are
// tried, and all ways there, one safe plan after the other.

// position is a group between two rounds: each task's owner and learner, none where there is none, and who has its
// state, a bit for each member.
type position struct {
	owner, learner [5]int8
	state          [5]uint8
}

const nobody int8 = -1

// least is the least that led to a position, each of the three by itself.
type least struct{ rounds, moved, bytes float64 }

func (a least) or(b least) least {
	return least{min(a.rounds, b.rounds), min(a.moved, b.moved), min(a.bytes, b.bytes)}
}

// optimum searches the scenario's events. It knows of joins, leaves and crashes, each followed by settling.
type optimum struct {
	*Scenario
	names   []string
	there   []bool
	leaving []bool
}

// solve returns the least numbers of rounds, of moved tasks and of bytes.
func (o *optimum) solve(t *testing.T) least {
	t.Helper()
	if o.policy.MaxLearners > 0 || len(o.tasks) > 5 {
		t.Fatal("the search is for at most five tasks and any number of learners")
	}
	var first position
	for i := range o.tasks {
		first.owner[i], first.learner[i] = nobody, nobody
	}
	for m, spec := range o.Scenario.members {
		o.names, o.there, o.leaving = append(o.names, spec.name), append(o.there, true), append(o.leaving, false)
		for _, id := range spec.owned {
			first.owner[id.Partition] = int8(m)
			first.state[id.Partition] |= 1 << m
		}
		for _, id := range slices.Concat(spec.local, spec.standby) {
			first.state[id.Partition] |= 1 << m
		}
	}
	reached := map[position]least{first: {}}
	for _, e := range o.events {
		if e.kind == settle {
			reached = o.settled(reached)
			continue
		}
		for _, s := range e.subjects {
			m := slices.Index(o.names, s.name)
			switch e.kind {
			case join:
				if m < 0 {
					m = len(o.names)
					o.names, o.there, o.leaving = append(o.names, s.name), append(o.there, false), append(o.leaving, false)
				}
				o.there[m], o.leaving[m] = true, false
			case leave:
				o.leaving[m] = true
			case crash:
				o.there[m] = false
				reached = without(reached, m)
			default:
				t.Fatalf("the search knows nothing of %s", e.kind)
			}
		}
	}
	all := least{math.Inf(1), math.Inf(1), math.Inf(1)}
	for _, l := range reached {
		all = all.or(l)
	}
	return all
}

// without takes what a member ran and learned from it. Its state stays where it is.
func without(reached map[position]least, m int) map[position]least {
	after := make(map[position]least)
	for p, l := range reached {
		for t := range p.owner {
			if p.owner[t] == int8(m) {
				p.owner[t] = nobody
			}
		}
		add(after, p, l)
	}
	return after
}

func add(all map[position]least, p position, l least) {
	if other, seen := all[p]; seen {
		l = l.or(other)
	}
	all[p] = l
}

// settled plays two rounds from every position, and keeps what is lawful then. More are of no use: what longer ways
// lead to is there after two too, one in which all learners begin and one in which all take over, with no more moves and
// copies, as long as their number is not bounded.
func (o *optimum) settled(reached map[position]least) map[position]least {
	ends := make(map[position]least)
	for round := range 3 {
		next := make(map[position]least)
		for p, l := range reached {
			if o.lawful(p) {
				add(ends, p, l)
			} else if round < 2 {
				o.plans(p, l, func(q position, m least) { add(next, q, m) })
			}
		}
		reached = next
	}
	// Who is drained exits.
	for m := range o.leaving {
		if o.leaving[m] {
			o.there[m] = false
		}
	}
	return ends
}

// plans calls f with what each safe plan leads to: each task stays as it is, goes to its ready learner, or gets a
// learner; one without an owner goes anywhere.
func (o *optimum) plans(p position, l least, f func(position, least)) {
	var choose func(t int, q position, m least)
	choose = func(t int, q position, m least) {
		if t == len(o.tasks) {
			if q != p {
				m.rounds++
				f(q, m)
			}
			return
		}
		if p.owner[t] != nobody {
			choose(t+1, q, m)
		}
		for to := range o.names {
			if !o.there[to] || o.leaving[to] || p.owner[t] == int8(to) {
				continue
			}
			r, n := q, m
			has := p.state[t]&(1<<to) != 0 || !o.tasks[t].stateful
			if !has {
				n.bytes += o.tasks[t].size
			}
			r.state[t] |= 1 << to
			switch {
			case p.owner[t] == nobody, !o.tasks[t].stateful, p.learner[t] == int8(to):
				r.owner[t], r.learner[t] = int8(to), nobody
				n.moved++
			case p.learner[t] == nobody: // a learner that is replaced never helps
				r.learner[t] = int8(to)
			default:
				continue
			}
			choose(t+1, r, n)
		}
	}
	choose(0, p, l)
}

// lawful tells whether the group may stay like that: tasks run on members that stay, nobody learns, and no two
// members are as far apart as the balancing factor, stateful tasks by themselves and all together.
func (o *optimum) lawful(p position) bool {
	stateful, total := make([]int, len(o.names)), make([]int, len(o.names))
	for t := range o.tasks {
		owner := p.owner[t]
		if owner == nobody || o.leaving[owner] || p.learner[t] != nobody {
			return false
		}
		total[owner]++
		if o.tasks[t].stateful {
			stateful[owner]++
		}
	}
	for a := range o.names {
		for b := range o.names {
			if o.there[a] && o.there[b] && !o.leaving[a] && !o.leaving[b] &&
				max(stateful[a]-stateful[b], total[a]-total[b]) >= o.policy.BalancingFactor {
				return false
			}
		}
	}
	return true
}

// TestOptimum runs small groups eagerly and stably, and beside it the least that is possible. The result is
// a table, which docs/scaling.md has too.
func TestOptimum(t *testing.T) {
	datadriven.RunTest(t, "testdata/optimum", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		fmt.Fprintln(&b, "| case | | rounds | tasks moved | restored |")
		fmt.Fprintln(&b, "| --- | --- | --- | --- | --- |")
		for text := range strings.SplitSeq(d.Input, "---\n") {
			name, file, _ := strings.Cut(text, "\n")
			s, err := Parse(name, []byte(file))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			c, err := Compare(s, both(t)...)
			if err != nil {
				d.Fatalf(t, "%s: %v", name, err)
			}
			best := (&optimum{Scenario: s}).solve(t)
			row := func(first, of string, rounds, moved int, bytes float64) {
				fmt.Fprintf(&b, "| %s | %s | %d | %d | %.1f GiB |\n", first, of, rounds, moved, bytes/(1<<30))
			}
			row(strings.TrimPrefix(name, "# "), "least", int(best.rounds), int(best.moved), best.bytes)
			for _, v := range c.Variants {
				m := c.Results[v.Name].Metrics
				row("", v.Name, m.Rebalances, m.TasksMoved, float64(*m.BytesRestored))
				if float64(m.Rebalances) < best.rounds || float64(m.TasksMoved) < best.moved || float64(*m.BytesRestored) < best.bytes {
					t.Errorf("%s: %s does with less than the least: the search is wrong", name, v.Name)
				}
			}
		}
		return b.String()
	})
}

// TestOptimumOfRandomGroups holds small random groups against the least that is possible.
func TestOptimumOfRandomGroups(t *testing.T) {
	groups := 300
	if testing.Short() {
		groups = 50
	}
	over := map[int]int{} // groups by how many tasks moved beyond the least
	for seed := range groups {
		src := randomSmall(rand.New(rand.NewSource(int64(seed))))
		s, err := Parse("small.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(s, both(t)...)
		if err != nil {
			t.Fatal(err)
		}
		best := (&optimum{Scenario: s}).solve(t)
		for _, v := range c.Variants {
			m := c.Results[v.Name].Metrics
			if float64(m.Rebalances) < best.rounds || float64(m.TasksMoved) < best.moved || float64(*m.BytesRestored) < best.bytes {
				t.Errorf("seed %d: %s: %+v is less than the least, %+v\n%s", seed, v.Name, m, best, src)
			}
			if v.Name == string(Stable) {
				over[m.TasksMoved-int(best.moved)]++
			}
		}
	}
	t.Logf("tasks moved beyond the least, and in how many of the groups: %v", over)
	if over[0]*10 < groups*9 {
		t.Errorf("only %d of %d groups move no more tasks than they must", over[0], groups)
	}
}

// randomSmall is a group of up to three members and four tasks to which one thing happens.
func randomSmall(r *rand.Rand) string {
	var b strings.Builder
	tasks, members := 1+r.Intn(4), 1+r.Intn(3)
	b.WriteString("tasks:\n")
	for n := range tasks {
		fmt.Fprintf(&b, "  - {id: T%d, stateful: %t, size: %dGiB}\n", n, r.Intn(4) > 0, 1+r.Intn(4))
	}
	b.WriteString("members:\n")
	owned := make([][]string, members)
	for n := range tasks {
		m := n % members
		owned[m] = append(owned[m], fmt.Sprintf("T%d", n))
	}
	for m := range members {
		fmt.Fprintf(&b, "  S%d: [%s]\n", m, strings.Join(owned[m], ", "))
	}
	b.WriteString("events:\n")
	switch what := r.Intn(3); {
	case what == 0 || members == 1:
		b.WriteString("  - join: new\n")
	case what == 1:
		fmt.Fprintf(&b, "  - leave: S%d\n", r.Intn(members))
	default:
		fmt.Fprintf(&b, "  - crash: S%d\n", r.Intn(members))
	}
	b.WriteString("  - settle: true\n")
	return b.String()
}
