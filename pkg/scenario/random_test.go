package scenario

import (
	"bytes"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// TestExamples runs the scenarios that users start from.
func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/sc*/*.yaml") // scenarios and scaling
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Compare(s, both(t)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range c.Variants {
				check(t, c.Results[v.Name], len(s.tasks))
				if !c.Results[v.Name].Stable {
					t.Errorf("%s: not stable at the end", v.Name)
				}
			}
			if err := c.WriteText(&bytes.Buffer{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// check holds every rebalance against what must be true of all of them.
func check(t *testing.T, r Result, tasks int) {
	t.Helper()
	for i, x := range r.Rebalances {
		owned, learned := make(map[string]string), make(map[string]string)
		leaders := 0
		for name, m := range x.Assigned {
			for _, id := range m.Assigned {
				if other, taken := owned[id]; taken {
					t.Errorf("rebalance %d: %s is run by %s and %s", i+1, id, name, other)
				}
				owned[id] = name
			}
			for _, id := range m.Learning {
				if other, taken := learned[id]; taken {
					t.Errorf("rebalance %d: %s is learned by %s and %s", i+1, id, name, other)
				}
				learned[id] = name
			}
			joined := x.Joined[name]
			if !slices.Equal(joined.Revoked, m.Revoked) {
				t.Errorf("rebalance %d: %s revokes %v, then %v", i+1, name, joined.Revoked, m.Revoked)
			}
			for _, id := range joined.Revoked {
				if slices.Contains(m.Assigned, id) || slices.Contains(joined.Assigned, id) {
					t.Errorf("rebalance %d: %s revokes %s and has it", i+1, name, id)
				}
			}
			if joined.Leaving && len(m.Learning)+len(m.Standby) > 0 {
				t.Errorf("rebalance %d: %s is leaving and gets copies", i+1, name)
			}
			if joined.Leader {
				leaders++
			}
		}
		if len(owned) != tasks || len(x.Assigned) != len(x.Joined) || leaders != 1 {
			t.Errorf("rebalance %d: %d of %d tasks run, %d leaders", i+1, len(owned), tasks, leaders)
		}
		for id, name := range learned {
			if owned[id] == name {
				t.Errorf("rebalance %d: %s runs and learns %s", i+1, name, id)
			}
		}
	}
}

func TestRandomScenarios(t *testing.T) {
	seeds := 1500
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		src := randomScenario(rand.New(rand.NewSource(int64(seed))))
		s, err := Parse("random.yaml", []byte(src))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		r, err := s.Run()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		check(t, r, len(s.tasks))
		if !r.Stable {
			t.Errorf("not stable")
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, src)
		}
	}
}

// randomScenario has only events that can be. A member that left or crashed may still be named.
func randomScenario(r *rand.Rand) string {
	var b strings.Builder
	tasks, members := 1+r.Intn(12), 1+r.Intn(5)
	fmt.Fprintf(&b, "tasks:\n")
	for n := range tasks {
		fmt.Fprintf(&b, "  - {id: T%d, stateful: %t, size: %dMiB, load: 0.%d, changes: %dMiB}\n", n, r.Intn(4) > 0, r.Intn(4)*50, r.Intn(10), r.Intn(3))
	}
	if r.Intn(2) == 0 {
		fmt.Fprintf(&b, "times: {round: %ds, handover: %dms, session: %ds, restart: %ds}\n", r.Intn(3), r.Intn(100), r.Intn(20), r.Intn(30))
	}
	if r.Intn(4) == 0 {
		fmt.Fprintf(&b, "crashes: {every: 60s, seed: %d}\n", r.Intn(100))
	}
	fmt.Fprintf(&b, "policy: {learners: %s, max_learners: %d, standbys: %d, balancing_factor: %d}\nmembers:\n",
		[]Learners{Eager, Stable}[r.Intn(2)], r.Intn(3), r.Intn(2), 2+r.Intn(2))
	owned := make([][]string, members)
	for n := range tasks {
		if m := r.Intn(members + 1); m < members {
			owned[m] = append(owned[m], fmt.Sprintf("T%d", n))
		}
	}
	for m := range members {
		fmt.Fprintf(&b, "  S%d: {tasks: [%s], capacity: %d}\n", m, strings.Join(owned[m], ", "), r.Intn(3))
	}
	fmt.Fprintln(&b, "events:")
	joined := members
	for range 3 + r.Intn(12) {
		name := fmt.Sprintf("S%d", r.Intn(joined))
		switch r.Intn(10) {
		case 0, 1:
			fmt.Fprintf(&b, "  - leave: %s\n", name)
		case 2:
			fmt.Fprintf(&b, "  - cancel_leave: %s\n", name)
		case 3:
			fmt.Fprintf(&b, "  - crash: %s\n", name)
		case 4:
			fmt.Fprintf(&b, "  - join: S%d\n", joined)
			joined++
		case 5:
			fmt.Fprintf(&b, "  - leave: %s\n  - timeout: %s\n", name, name)
		case 6:
			fmt.Fprintln(&b, "  - ready: all")
		case 7:
			fmt.Fprintf(&b, "  - wait: %ds\n", r.Intn(30))
		case 8:
			fmt.Fprintf(&b, "  - restart: %s\n", name)
		default:
			fmt.Fprintln(&b, "  - settle: true")
		}
	}
	fmt.Fprintln(&b, "  - settle: true")
	return b.String()
}

// TestLarge settles a group of the size that the assignor is built for.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const members, tasks = 1000, 10000
	var b strings.Builder
	fmt.Fprintf(&b, "tasks: {count: %d}\nmembers:\n", tasks)
	for m := range members {
		var ids []string
		for n := m; n < tasks; n += members {
			ids = append(ids, assign.TaskID{Partition: int32(n)}.String())
		}
		fmt.Fprintf(&b, "  S%d: {tasks: [%s], labels: {pool: p%d}}\n", m, strings.Join(ids, ", "), m%10)
	}
	b.WriteString("events:\n  - leave: {selector: {pool: p0}}\n  - settle: true\n")
	s, err := Parse("large.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	s.GroupBytes = func(in assign.Input, plan assign.Plan) int { calls++; return len(in.Members) + len(plan) }
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, tasks)
	if len(r.Left) != members/10 || r.Metrics.TasksMoved != tasks/10 || calls == 0 || *r.Metrics.MaxGroupBytes != 2*members {
		t.Errorf("left %d, moved %d, measured %d times, %d", len(r.Left), r.Metrics.TasksMoved, calls, *r.Metrics.MaxGroupBytes)
	}
}

func FuzzParse(f *testing.F) {
	for seed := range 20 {
		f.Add(randomScenario(rand.New(rand.NewSource(int64(seed)))))
	}
	f.Add("tasks: {count: 3}\nmembers: {S1: {local: [0_0]}}\nevents: [{join: [S2, {S3: {labels: {a: b}}}]}, {leave: {selector: {a: b}}}, {ready: {S3: 0_1}}]")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Parse("fuzz.yaml", []byte(src))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.yaml") {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		if len(s.tasks) > 200 || len(s.members) > 50 || len(s.events) > 50 {
			return
		}
		for _, e := range s.events {
			if s.crashes.every > 0 && e.seconds > 100*s.crashes.every {
				return
			}
		}
		if r, err := s.Run(); err == nil {
			check(t, r, len(s.tasks))
		}
	})
}
