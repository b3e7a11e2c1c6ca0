package assign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs testdata: what happens to a group, round by round. Commands:
//
//	group [tasks=N] [second=N] [stateless=(T1,T2)] [inputs=(a=T1+T2,b=T3)] [factor=N] [max-learners=N] [standbys=N]
//	<member> [owned=T1,T2] [releasing=..] [learning=..] [ready=..] [standby=..] [local=..] [stuck=..] [capacity=N] [rack=..] [leaving] [instance=..] [started=N] [starts=N]
//
// sets up a group; member ids are names. Tasks are T1, T2 and so on, those of a second subtopology U1, U2 and so on; inputs says
// which racks have replicas of the input of which tasks.
//
//	round
//	<member> <event>
//
// lets events happen, then plans one round and prints what each member reported and what it is told.
// rest plans rounds until the next would change nothing. Events before the round:
//
//	joins [capacity=N] | leaves | stays | crashes | ready <tasks> | stuck [<tasks>] | misses (the round; is removed)
//
// and during it:
//
//	loses-plan | commit-refused | commit-unanswered (of its releases)
//
// Members do what they are told at once, but for these faults. Each plan is held against the rules.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		c := &cluster{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "group":
				*c = newCluster(t, d)
				return ""
			case "round":
				return c.round(t, c.events(t, d))
			case "rest":
				var b strings.Builder
				faults := c.events(t, d)
				for range 20 {
					b.WriteString(c.round(t, faults))
					faults = nil
					if c.rests {
						return b.String()
					}
				}
				return b.String() + "no rest\n"
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

// cluster is a group of members that do what they are told.
type cluster struct {
	in      Input
	members map[string]*Report
	gone    map[string]*Report // state that members left behind
	tokens  map[Handover]bool  // committed releases
	rests   bool
}

func newCluster(t *testing.T, d *datadriven.TestData) cluster {
	c := cluster{members: make(map[string]*Report), gone: make(map[string]*Report), tokens: make(map[Handover]bool)}
	tasks, second := 5, 0
	var stateless, inputs []string
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "stateless":
			stateless = a.Vals
		case "tasks":
			a.Scan(t, 0, &tasks)
		case "second":
			a.Scan(t, 0, &second)
		case "inputs":
			inputs = a.Vals
		case "factor":
			a.Scan(t, 0, &c.in.Policy.BalancingFactor)
		case "max-learners":
			a.Scan(t, 0, &c.in.Policy.MaxLearners)
		case "standbys":
			a.Scan(t, 0, &c.in.Policy.Standbys)
		default:
			d.Fatalf(t, "unknown argument %s", a.Key)
		}
	}
	for n := 1; n <= tasks+second; n++ {
		name := fmt.Sprintf("T%d", n)
		if n > tasks {
			name = fmt.Sprintf("U%d", n-tasks)
		}
		task := Task{ID: taskID(t, name), Stateful: !slices.Contains(stateless, name)}
		for _, in := range inputs {
			rack, of, _ := strings.Cut(in, "=")
			if slices.Contains(strings.Split(of, "+"), name) {
				task.Racks = append(task.Racks, rack)
			}
		}
		c.in.Tasks = append(c.in.Tasks, task)
	}
	for _, line := range lines(d) {
		f := strings.Fields(line)
		c.members[f[0]] = &Report{}
		configure(t, c.members[f[0]], f[1:])
	}
	return c
}

func lines(d *datadriven.TestData) []string {
	return slices.DeleteFunc(strings.Split(d.Input, "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
}

func configure(t *testing.T, r *Report, args []string) {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		copies := func() (list []Copy) {
			for _, id := range taskIDs(t, value) {
				list = append(list, Copy{Task: id})
			}
			return list
		}
		switch key {
		case "owned":
			r.Owned = taskIDs(t, value)
		case "releasing":
			for _, id := range taskIDs(t, value) {
				r.Releasing = append(r.Releasing, Handover{Task: id, Release: ReleaseID{Generation: -1, Owner: "S9"}})
			}
		case "learning":
			r.Learning = copies()
		case "ready":
			r.Ready = taskIDs(t, value)
		case "standby":
			r.Standby, r.Ready = copies(), taskIDs(t, value)
		case "local":
			r.Local = copies()
		case "stuck":
			r.Stuck = taskIDs(t, value)
		case "capacity":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			r.Capacity = uint32(n)
		case "rack":
			r.Rack = value
		case "leaving":
			r.Leaving = true
		case "instance":
			r.Instance = value
		case "started", "starts":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			if key == "starts" {
				r.Incarnation.Starts = uint32(n)
			} else {
				r.Incarnation.StartMs = int64(n)
			}
		default:
			t.Fatalf("unknown argument %s", a)
		}
	}
}

// faults are what goes wrong in a round, by member.
type faults map[string]string

func (c *cluster) events(t *testing.T, d *datadriven.TestData) faults {
	during := make(faults)
	for _, line := range lines(d) {
		f := strings.Fields(line)
		name, event := f[0], f[1]
		m := c.members[name]
		if m == nil && event != "joins" {
			d.Fatalf(t, "%s: no such member", line)
		}
		switch event {
		case "joins":
			m = cmp.Or(c.gone[name], &Report{})
			configure(t, m, f[2:])
			c.members[name] = m
		case "leaves":
			m.Leaving = true
		case "stays":
			m.Leaving = false
		case "crashes", "misses":
			// What it ran or copied is state on its disk.
			left := follow(m, &MemberPlan{Release: releases(m)})
			c.gone[name] = &Report{Local: left.Local}
			delete(c.members, name)
		case "ready":
			m.Ready = append(m.Ready, taskIDs(t, strings.Join(f[2:], ","))...)
		case "stuck":
			if m.Stuck = nil; len(f) > 2 {
				m.Stuck = taskIDs(t, strings.Join(f[2:], ","))
			}
		case "loses-plan", "commit-refused", "commit-unanswered":
			during[name] = event
		default:
			d.Fatalf(t, "unknown event %s", event)
		}
	}
	return during
}

func releases(m *Report) (hs []Handover) {
	for _, id := range m.Owned {
		hs = append(hs, Handover{Task: id})
	}
	return append(hs, m.Releasing...)
}

// round makes the reports, plans, and lets the members follow.
func (c *cluster) round(t *testing.T, during faults) string {
	var b strings.Builder
	c.in.Generation++
	c.in.Members = nil
	names := slices.Sorted(maps.Keys(c.members))
	for _, name := range names {
		c.in.Members = append(c.in.Members, Member{ID: name, Report: *c.members[name]})
	}
	plan := Assign(c.in)
	fmt.Fprintf(&b, "round %d\n", c.in.Generation)
	for _, name := range names {
		fmt.Fprintf(&b, "  %s %s\n     -> %s\n", name, claims(c.members[name]), orders(plan[name]))
	}
	for _, v := range violations(c.in, plan) {
		fmt.Fprintf(&b, "  VIOLATION %s\n", v)
	}
	for _, x := range Conflicts(c.in) {
		fmt.Fprintf(&b, "  conflict: %s\n", x)
	}
	c.follow(plan, during)
	c.rests = len(during) == 0 && Rests(c.in, plan)
	return b.String()
}

func (c *cluster) follow(plan Plan, during faults) {
	next := make(map[string]*Report)
	for name, m := range c.members {
		p := plan[name]
		if during[name] == "loses-plan" {
			next[name] = m
			continue
		}
		r := follow(m, &p)
		next[name] = &r
		for _, h := range p.Release {
			if c.tokens[h] {
				continue // it looks first, and finds its own token
			}
			c.tokens[h] = during[name] != "commit-refused"
			if during[name] != "" {
				r.Releasing = append(r.Releasing, h)
				r.Local = slices.DeleteFunc(r.Local, func(c Copy) bool { return c.Task == h.Task })
			}
		}
	}
	for name, r := range next {
		if p := plan[name]; during[name] != "loses-plan" {
			for _, h := range p.Take {
				if !c.tokens[h] {
					r.Taking = append(r.Taking, h)
					r.Owned = slices.DeleteFunc(r.Owned, func(id TaskID) bool { return id == h.Task })
				}
			}
			if p.Superseded {
				delete(next, name)
			}
		}
	}
	c.members = next
}

func taskID(t *testing.T, name string) TaskID {
	sub := strings.IndexAny(name, taskLetters)
	n, err := strconv.Atoi(strings.TrimLeft(name, taskLetters))
	if err != nil || sub != 0 {
		t.Fatalf("task %q: %v", name, err)
	}
	return TaskID{Subtopology: int32(strings.IndexByte(taskLetters, name[0])), Partition: int32(n)}
}

// taskLetters stand for subtopologies.
const taskLetters = "TU"

func taskName(id TaskID) string {
	return fmt.Sprintf("%c%d", taskLetters[id.Subtopology], id.Partition)
}

func taskIDs(t *testing.T, names string) (ids []TaskID) {
	for name := range strings.SplitSeq(names, ",") {
		ids = append(ids, taskID(t, name))
	}
	return ids
}

// claims and orders write down a report and a plan.
func claims(r *Report) string {
	var b phrases
	b.tasks("owned", r.Owned)
	b.handovers("releasing", r.Releasing)
	b.handovers("taking", r.Taking)
	copies := func(word string, list []Copy) {
		var cold, ready []TaskID
		for _, c := range list {
			if slices.Contains(r.Ready, c.Task) {
				ready = append(ready, c.Task)
			} else {
				cold = append(cold, c.Task)
			}
		}
		b.tasks(word, cold)
		b.tasks(word+", ready", ready)
	}
	copies("learning", r.Learning)
	copies("standby", r.Standby)
	copies("local", r.Local)
	b.tasks("stuck", r.Stuck)
	if r.Leaving {
		b = append(b, "leaving")
	}
	return b.String()
}

func orders(p MemberPlan) string {
	var b phrases
	b.tasks("own", p.Own)
	b.handovers("release", p.Release)
	b.handovers("take", p.Take)
	b.tasks("learn", p.Learn)
	b.tasks("standby", p.Standby)
	if p.Superseded {
		b = append(b, "exit: superseded")
	}
	return b.String()
}

type phrases []string

func (b *phrases) tasks(word string, ids []TaskID) {
	for i, id := range ids {
		if i == 0 {
			*b = append(*b, word)
		}
		(*b)[len(*b)-1] += " " + taskName(id)
	}
}

func (b *phrases) handovers(word string, hs []Handover) {
	for i, h := range hs {
		if i == 0 {
			*b = append(*b, word)
		}
		(*b)[len(*b)-1] += fmt.Sprintf(" %s(%d,%s)", taskName(h.Task), h.Release.Generation, h.Release.Owner)
	}
}

func (b phrases) String() string {
	if len(b) == 0 {
		return "nothing"
	}
	return strings.Join(b, "; ")
}
