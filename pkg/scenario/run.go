package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// run is a scenario being run.
type run struct {
	*Scenario
	tasksIn    []assign.Task
	members    map[string]*member
	gone       map[string]map[assign.TaskID]float64 // the state that members left behind
	leader     string
	generation int32
	lastOwner  map[assign.TaskID]string
	result     Result

	now, learning, gap float64 // seconds; task seconds
	groupBytes         int
}

// Run plays the scenario. An event that cannot be, such as a member ready for a task that it does not
// learn, is an error with its place in the file.
func (s *Scenario) Run() (Result, error) {
	r := &run{
		Scenario:  s,
		members:   make(map[string]*member),
		gone:      make(map[string]map[assign.TaskID]float64),
		lastOwner: make(map[assign.TaskID]string),
		result:    Result{Rebalances: []Rebalance{}, Left: []string{}, Skipped: []string{}},
	}
	for i, t := range s.tasks {
		r.tasksIn = append(r.tasksIn, assign.Task{ID: assign.TaskID{Partition: int32(i)}, Stateful: t.stateful})
	}
	for i, spec := range s.members {
		r.members[spec.name] = s.newMember(spec, nil)
		if spec.leads || i == 0 {
			r.leader = spec.name
		}
		for _, id := range spec.owned {
			r.lastOwner[id] = spec.name
		}
	}
	r.result.start = r.describe()
	settled := false
	for _, e := range s.events {
		if e.kind == settle {
			settled = true
			r.settle()
		} else if err := r.event(e); err != nil {
			return Result{}, err
		}
	}
	in := r.input()
	r.result.Stable = !assign.Changes(in, assign.Assign(in))
	r.measure(settled)
	return r.result, nil
}

func (r *run) names() []string { return slices.Sorted(maps.Keys(r.members)) }

// describe is the group before the first event in a line.
func (r *run) describe() string {
	if len(r.members) == 0 {
		return "The group has no members."
	}
	var parts []string
	for _, name := range r.names() {
		parts = append(parts, name+list(r.taskNames(r.members[name].report.Owned)))
	}
	state := "Group stable state: "
	if in := r.input(); assign.Changes(in, assign.Assign(in)) {
		state = "Group state, not stable: "
	}
	return state + strings.Join(parts, ", ")
}

func (r *run) measure(settled bool) {
	m := &r.result.Metrics
	m.Rebalances = len(r.result.Rebalances)
	if settled {
		seconds := func(x float64) *float64 { x = math.Round(x*1e6) / 1e6; return &x }
		m.SecondsToBalance, m.DoubleProcessingTaskSeconds, m.GapTaskSeconds = seconds(r.now), seconds(r.learning), seconds(r.gap)
	}
	if r.GroupBytes != nil {
		m.MaxGroupBytes = &r.groupBytes
	}
}

func (r *run) input() assign.Input {
	in := assign.Input{Generation: r.generation + 1, Tasks: r.tasksIn, Policy: r.policy}
	for _, name := range r.names() {
		in.Members = append(in.Members, assign.Member{ID: name, Report: r.reported(r.members[name])})
	}
	return in
}

// rounds plans until nothing changes. trigger is what the first one is for.
func (r *run) rounds(trigger string) {
	for {
		if _, there := r.members[r.leader]; !there && len(r.members) > 0 {
			r.leader = r.names()[0]
		}
		in := r.input()
		plan := assign.Assign(in)
		if r.GroupBytes != nil {
			r.groupBytes = max(r.groupBytes, r.GroupBytes(in, plan))
		}
		if !assign.Changes(in, plan) {
			r.exits()
			return
		}
		r.generation = in.Generation
		round := r.record(trigger, in, plan)
		next := assign.Follow(in, plan)
		for i := range next.Members {
			m := &next.Members[i]
			r.follow(r.members[m.ID], plan[m.ID], m.Report)
			for _, id := range m.Owned {
				if last, had := r.lastOwner[id]; had && last != m.ID {
					r.result.Metrics.TasksMoved++
				}
				r.lastOwner[id] = m.ID
			}
		}
		round.left = r.exits()
		r.result.Rebalances = append(r.result.Rebalances, round)
		trigger = "follow-up"
	}
}

// exits lets drained members go.
func (r *run) exits() (left []string) {
	for _, name := range r.names() {
		if m := r.members[name]; m.report.Leaving && len(m.report.Owned) == 0 {
			r.leave(name)
			left = append(left, name)
		}
	}
	return left
}

// leave takes a member out of the group that says so.
func (r *run) leave(name string) {
	r.remove(name)
	r.result.Left = append(r.result.Left, name)
}

func (r *run) remove(name string) {
	r.gone[name] = r.members[name].restored
	delete(r.members, name)
}

func (r *run) record(trigger string, in assign.Input, plan assign.Plan) Rebalance {
	round := Rebalance{Trigger: trigger, Joined: make(map[string]Joined), Assigned: make(map[string]Assigned), leader: r.leader, at: r.now}
	for _, reported := range in.Members {
		m, p := r.members[reported.ID], plan[reported.ID]
		revoked := handedOver(p.Release)
		own := slices.DeleteFunc(slices.Clone(m.report.Owned), func(id assign.TaskID) bool { return slices.Contains(revoked, id) })
		got := slices.Concat(p.Own, handedOver(p.Take))
		slices.SortFunc(got, assign.TaskID.Compare)
		round.Joined[m.name] = Joined{
			Assigned: r.taskNames(own),
			Revoked:  r.taskNames(revoked),
			Learning: r.taskNames(tasksOf(m.report.Learning)),
			Ready:    r.taskNames(m.ready(r.learners)),
			Standby:  r.taskNames(tasksOf(m.report.Standby)),
			Leaving:  m.report.Leaving,
			Leader:   m.name == r.leader,
		}
		round.Assigned[m.name] = Assigned{
			Assigned: r.taskNames(got),
			Revoked:  r.taskNames(revoked),
			Learning: r.taskNames(p.Learn),
			Standby:  r.taskNames(p.Standby),
		}
	}
	return round
}

// skip notes an event for a member that is no longer there.
func (r *run) skip(e event, name string) {
	r.result.Skipped = append(r.result.Skipped, fmt.Sprintf("%s: %s has already left", e.node.Path(), name))
}
