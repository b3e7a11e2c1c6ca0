package scenario

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// run is a scenario being run.
type run struct {
	*Scenario
	tasksIn    []assign.Task
	members    map[string]*member
	gone       map[string]map[assign.TaskID]float64 // what the copies lack that members left behind
	absent     []absent
	leader     string
	generation int32
	lastOwner  map[assign.TaskID]string
	result     Result

	now      float64 // seconds since the first event
	timed    bool    // time may pass
	planAt   float64 // when the round under way is over, if nothing holds it up; never if there is none
	triggers []string
	crashing bool
	random   *rand.Rand // of crashes

	cost       cost
	groupBytes int
}

// cost is what a run has cost so far: seconds, summed over tasks or members, and bytes.
type cost struct {
	rounds                 int
	busy                   float64
	learning, gap, longest float64
	restored               float64
	peak, overload         float64
	down                   map[assign.TaskID]float64 // how long each task has had no runner
}

// Run plays the scenario. An event that cannot be, such as a member ready for a task that it does not
// learn, is an error with its place in the file.
func (s *Scenario) Run() (Result, error) {
	r := &run{
		Scenario:  s,
		members:   make(map[string]*member),
		gone:      make(map[string]map[assign.TaskID]float64),
		lastOwner: make(map[assign.TaskID]string),
		planAt:    never,
		cost:      cost{down: make(map[assign.TaskID]float64)},
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
	r.sample()
	for _, e := range s.events {
		switch e.kind {
		case settle:
			r.settle()
		case wait:
			r.wait(e.seconds)
		default:
			if err := r.event(e); err != nil {
				return Result{}, err
			}
		}
	}
	r.sample()
	in := r.input()
	r.result.Stable = !assign.Changes(in, assign.Assign(in)) && len(r.absent) == 0
	r.measure()
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

func (r *run) measure() {
	m, c := &r.result.Metrics, &r.cost
	m.Rebalances = len(r.result.Rebalances)
	if r.GroupBytes != nil {
		m.MaxGroupBytes = &r.groupBytes
	}
	if !r.timed {
		return
	}
	number := func(x float64) *float64 { x = math.Round(x*1e6) / 1e6; return &x }
	if len(r.restoring()) == 0 {
		m.SecondsToBalance = number(c.busy)
	}
	m.DoubleProcessingTaskSeconds, m.GapTaskSeconds, m.LongestGapSeconds = number(c.learning), number(c.gap), number(c.longest)
	restored := int64(math.Round(c.restored))
	m.BytesRestored = &restored
	if r.times.round > 0 {
		m.Rounds = &c.rounds
	}
	if r.anyLoad {
		m.OverloadInstanceSeconds, m.PeakLoad = number(c.overload), number(c.peak)
	}
}

func (r *run) input() assign.Input {
	in := assign.Input{Generation: r.generation + 1, Tasks: r.tasksIn, Policy: r.policy}
	for _, name := range r.names() {
		in.Members = append(in.Members, assign.Member{ID: name, Report: r.reported(r.members[name])})
	}
	return in
}

// plan ends the round under way.
func (r *run) plan() {
	trigger := "follow-up"
	if len(r.triggers) > 0 {
		trigger = strings.Join(r.triggers, ", ")
	}
	r.planAt, r.triggers = never, nil
	if _, there := r.members[r.leader]; !there && len(r.members) > 0 {
		r.leader = r.names()[0]
	}
	r.cost.rounds++
	r.stop(r.times.pause, len(r.running()))
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
	given := false
	for i := range next.Members {
		m := &next.Members[i]
		p := plan[m.ID]
		given = given || len(p.Take) > 0 || len(p.Own) > len(r.members[m.ID].report.Owned)
		r.stop(r.times.handover, len(p.Take))
		r.follow(r.members[m.ID], p, m.Report)
		for _, id := range m.Owned {
			if last, had := r.lastOwner[id]; had && last != m.ID {
				r.result.Metrics.TasksMoved++
			}
			r.lastOwner[id] = m.ID
		}
	}
	round.left = r.exits()
	r.result.Rebalances = append(r.result.Rebalances, round)
	r.sample()
	// Who was given a task says so when it runs it, and who leaves makes a round too.
	if in = r.input(); given || len(round.left) > 0 || assign.Changes(in, assign.Assign(in)) {
		r.ask("")
	}
}

// sample notes how things stand, for drawings.
func (r *run) sample() {
	s := sample{
		at: r.now, rebalances: len(r.result.Rebalances), moved: r.result.Metrics.TasksMoved,
		idle: len(r.tasks) - len(r.running()), restored: r.cost.restored,
	}
	for _, m := range r.members {
		s.learners += len(m.report.Learning)
		s.highest = max(s.highest, r.utilisation(m))
	}
	r.result.trace = append(r.result.trace, s)
}

// stop adds a gap of so many tasks.
func (r *run) stop(seconds float64, tasks int) {
	if tasks > 0 {
		r.cost.gap += seconds * float64(tasks)
		r.cost.longest = max(r.cost.longest, seconds)
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
	r.gone[name] = r.members[name].lacks
	delete(r.members, name)
}

// enter lets a member join, with the state that a former one of its name left behind.
func (r *run) enter(spec memberSpec) {
	m := r.newMember(spec, r.gone[spec.name])
	m.crashAt = r.nextCrash()
	r.members[spec.name] = m
	delete(r.gone, spec.name)
	r.absent = slices.DeleteFunc(r.absent, func(a absent) bool { return a.name == spec.name })
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

// skip notes an event for a member that is not there.
func (r *run) skip(e event, name string) {
	why := "has already left"
	if slices.ContainsFunc(r.absent, func(a absent) bool { return a.name == name }) {
		why = "is not there at that time"
	}
	r.result.Skipped = append(r.result.Skipped, fmt.Sprintf("%s: %s %s", e.node.Path(), name, why))
}
