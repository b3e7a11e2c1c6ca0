package sim

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// groupState is a state of Kafka's classic group coordinator.
type groupState uint8

const (
	empty groupState = iota
	preparing
	completing
	stable
)

func (s groupState) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// member is what the coordinator knows of one member.
type member struct {
	id       string
	proc     *process // who joined under this id; it may be dead
	report   assign.Report
	truth    assign.Report // what the process's machine said at that join, for the checker
	joined   bool          // waits in the join phase
	answered bool          // the answer to its join waits for it
	plan     assign.MemberPlan
}

// group is the coordinator.
type group struct {
	state   groupState
	gen     int32
	leader  string
	members []*member
}

func (g *group) find(id string) *member {
	for _, m := range g.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// join takes a member's report. It reports whether the answer is there at once, without a round.
func (g *group) join(m *member, r assign.Report, fresh bool) (atOnce bool) {
	same := !fresh && reflect.DeepEqual(m.report, r)
	m.report = r
	if same && (g.state == stable && g.leader != m.id || g.state == completing) {
		return true
	}
	if g.state != preparing {
		g.prepare()
	}
	m.joined = true
	return false
}

// prepare begins a join phase.
func (g *group) prepare() {
	g.state = preparing
	for _, m := range g.members {
		m.joined, m.answered = false, false
	}
}

// complete ends the join phase: who has not joined is removed. It picks a leader by the given choice.
func (g *group) complete(pick func(n int) int) (removed []*member) {
	g.members = slices.DeleteFunc(g.members, func(m *member) bool {
		if !m.joined {
			removed = append(removed, m)
		}
		return !m.joined
	})
	g.gen++
	if len(g.members) == 0 {
		g.state = empty
		return removed
	}
	if g.find(g.leader) == nil {
		g.leader = g.members[pick(len(g.members))].id
	}
	for _, m := range g.members {
		m.joined, m.answered = false, true
		m.plan = assign.MemberPlan{}
	}
	g.state = completing
	return removed
}

// remove takes a member out: it left, or its session is over.
func (g *group) remove(m *member) {
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	if len(g.members) == 0 {
		g.state = empty
		g.gen++
		return
	}
	if g.state == stable || g.state == completing {
		g.prepare()
	}
}

// verdict is the coordinator's answer to a commit.
type verdict uint8

const (
	accepted verdict = iota
	unknownMember
	illegalGeneration
	rebalanceInProgress
	invalidEpoch // of the producer
)

func (v verdict) String() string {
	return [...]string{"accepted", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "INVALID_PRODUCER_EPOCH"}[v]
}

// judge decides about a commit. Whose tasks they are the coordinator does not know. Offsets in a transaction are
// also accepted between the last join and the plan.
func (g *group) judge(id string, gen int32, transactional bool) verdict {
	switch {
	case g.find(id) == nil:
		return unknownMember
	case gen != g.gen:
		return illegalGeneration
	case g.state == completing && !transactional:
		return rebalanceInProgress
	}
	return accepted
}

// String says what the group looks like, for traces.
func (g *group) String() string {
	s := fmt.Sprintf("%s %d:", g.state, g.gen)
	for _, m := range g.members {
		s += " " + m.id
		if m.id == g.leader {
			s += "*"
		}
		if m.joined {
			s += "+"
		}
	}
	return s
}
