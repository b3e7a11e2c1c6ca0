package handover

import (
	"maps"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Machine is one instance's view of its tasks. It is not safe for concurrent use: the loop that owns it
// calls every method, those that answer the group client among them.
type Machine struct {
	// Stable makes learners say ready only once all of them are (the KIP's stable mode).
	Stable bool
	// Racks makes standbys say so as well: one in a better rack replaces another when it has caught up.
	Racks bool
	// Yields says that every join is preceded by a Revoke of all that runs. Then a plan that gives a task back is nothing
	// that others wait for, and a round that it asked for would be followed by the next.
	Yields bool

	tasks    map[assign.TaskID]*TaskState
	lease    Lease
	leased   bool
	leaving  bool
	deadline int64
	nonce    uint32
	// wantRound: the next report has news. wantPlan: any plan will do that is made from now on, so a join
	// that is under way, from its report to its plan, is enough.
	wantRound bool
	wantPlan  bool
	joining   bool
	// markJoined and markPlanned tell whether the leaving mark was in the last report, and in the
	// report that the present plan was made from.
	markJoined  bool
	markPlanned bool
	superseded  bool
	stuck       []assign.TaskID
}

// New returns a machine that holds nothing.
func New() *Machine {
	return &Machine{tasks: map[assign.TaskID]*TaskState{}}
}

// Adopt takes a plan, and with it a new lease, in one step. An order that says what is being done already
// changes nothing of it. Nor does a plan that has been adopted: a member whose rejoin made no round is sent
// it once more, and what is under way for it must not begin again while its requests may still arrive.
func (m *Machine) Adopt(lease Lease, plan assign.MemberPlan) {
	m.markPlanned = m.markJoined
	m.joining = false
	if m.leased && m.lease == lease {
		return
	}
	m.lease, m.leased = lease, true
	m.wantPlan = false
	m.superseded = plan.Superseded
	told := map[assign.TaskID]bool{}
	for _, t := range plan.Own {
		told[t] = true
		m.adoptOwn(m.state(t))
	}
	for _, h := range plan.Take {
		told[h.Task] = true
		m.adoptTake(m.state(h.Task), h.Release)
	}
	for _, h := range plan.Release {
		told[h.Task] = true
		m.adoptRelease(m.state(h.Task), h.Release)
	}
	for _, t := range plan.Learn {
		told[t] = true
		m.adoptCopy(m.state(t), Learning)
	}
	for _, t := range plan.Standby {
		told[t] = true
		m.adoptCopy(m.state(t), Standby)
	}
	for t, s := range m.tasks {
		if !told[t] {
			s.enter(Idle)
		}
	}
	m.sayReady() // the last learner that was not ready may be gone
}

func (m *Machine) state(t assign.TaskID) *TaskState {
	s := m.tasks[t]
	if s == nil {
		s = &TaskState{}
		m.tasks[t] = s
	}
	return s
}

// enter changes the phase and forgets what belonged to the former one, but not what may still arrive.
func (s *TaskState) enter(p Phase) {
	if s.Phase == p && p == Idle {
		return
	}
	*s = TaskState{Phase: p, Epoch: s.Epoch + 1, pending: s.pending}
}

func (m *Machine) adoptOwn(s *TaskState) {
	if s.Phase.Owns() {
		s.Release = assign.ReleaseID{}
		return
	}
	// Also from a release that was ordered before: what is in memory is not resumed (rule 5).
	s.enter(Opening)
	// A ready learner elsewhere, or the next move of a stateless task, waits until this is an owner.
	m.wantRound = m.wantRound || !m.Yields
}

func (m *Machine) adoptTake(s *TaskState, id assign.ReleaseID) {
	if (s.Phase.Owns() || s.Phase == Taking) && s.Release == id {
		return // started on it already, or waiting for it
	}
	s.enter(Taking)
	s.Release = id
}

func (m *Machine) adoptRelease(s *TaskState, id assign.ReleaseID) {
	switch {
	case s.Phase == Running:
		after := s.after
		s.enter(Releasing)
		s.after, s.found = after, true
	case s.Phase == Released && s.Release == id:
		return
	case s.Phase.InRelease():
		// Told again: the earlier commit may have been written after all (rule 4).
		s.Phase, s.Epoch = Looking, s.Epoch+1
	default:
		// Not open here: what is committed is all there is to hand over.
		s.enter(Looking)
	}
	s.Release = id
}

func (m *Machine) adoptCopy(s *TaskState, p Phase) {
	if s.Phase.Copies() {
		if s.Phase != p {
			s.Phase, s.said = p, false
		}
		return
	}
	s.enter(p)
}

// Lost ends the lease: the group removed this member, or its own clock says that it may have. What is
// owned, released or taken is dropped; copies go on, nobody else writes to them. The next join makes a
// round even if the group still has this member: its old lease, under which requests may still arrive, must
// not come back.
func (m *Machine) Lost() {
	m.leased = false
	m.markPlanned = false
	m.joining, m.wantPlan = false, false
	m.nonce++
	for _, s := range m.tasks {
		if !s.Phase.Copies() {
			s.enter(Idle)
		}
	}
}

// Lease is the present lease; false: there is none, and nothing may be committed.
func (m *Machine) Lease() (Lease, bool) { return m.lease, m.leased }

// MayCommit says whether ordinary commits of the task are allowed now.
func (m *Machine) MayCommit(t assign.TaskID) bool {
	s := m.tasks[t]
	return m.leased && s != nil && s.Phase == Running && s.pending != m.lease
}

// Metadata is what an ordinary commit of the task says, under the present lease.
func (m *Machine) Metadata(t assign.TaskID) Metadata {
	return Metadata{Committer: m.lease.Member, After: m.Task(t).after}
}

// MayOpen says whether the committed offset of an opening task may be fetched now. A commit that is on its
// way, or has no answer, could still move it; once it is answered, or under the next lease, it cannot.
func (m *Machine) MayOpen(t assign.TaskID) bool {
	s := m.tasks[t]
	return m.leased && s != nil && s.Phase == Opening && s.pending != m.lease
}

// Task is the state of one task.
func (m *Machine) Task(t assign.TaskID) TaskState {
	if s := m.tasks[t]; s != nil {
		return *s
	}
	return TaskState{}
}

// Tasks are the tasks that are not idle, in order of id.
func (m *Machine) Tasks() []assign.TaskID {
	return slices.SortedFunc(func(yield func(assign.TaskID) bool) {
		for t, s := range maps.All(m.tasks) {
			if s.Phase != Idle && !yield(t) {
				return
			}
		}
	}, assign.TaskID.Compare)
}

// Superseded says that the last plan told this instance to exit: a later incarnation of it has joined.
func (m *Machine) Superseded() bool { return m.superseded }

// SetLeaving puts the leaving mark, with its absolute deadline in ms since the epoch (0: none), into
// the reports to come, or takes it out.
func (m *Machine) SetLeaving(leaving bool, deadlineMs int64) {
	if m.leaving == leaving && m.deadline == deadlineMs {
		return
	}
	m.leaving, m.deadline = leaving, deadlineMs
	if !leaving {
		m.markPlanned = false
	}
	m.wantRound = true
}

// Leaving says whether the leaving mark is set.
func (m *Machine) Leaving() bool { return m.leaving }

// DeadlineMs is the leaving mark's absolute deadline, in ms since the epoch; 0: none.
func (m *Machine) DeadlineMs() int64 { return m.deadline }

// SetStuck puts the copies that do not come on into the reports to come. A round is wanted if one more of those at work does not, and
// if a task may have a copy here again: a standby may be missing.
func (m *Machine) SetStuck(tasks []assign.TaskID) {
	for _, t := range tasks {
		if !slices.Contains(m.stuck, t) && m.Task(t).Phase.Copies() {
			m.wantRound = true
		}
	}
	for _, t := range m.stuck {
		if !slices.Contains(tasks, t) && m.Task(t).Phase == Idle {
			m.wantRound = true
		}
	}
	m.stuck = tasks
}

// Drained says that the present plan was made from a report with the leaving mark in it, and that nothing
// is left that this instance would have to give away.
func (m *Machine) Drained() bool {
	return m.leaving && m.leased && m.markPlanned && m.Held() == 0
}

// Held counts the tasks that a leaving instance still has to give away.
func (m *Machine) Held() int {
	n := 0
	for _, s := range m.tasks {
		if s.Phase.Holds() {
			n++
		}
	}
	return n
}

// TakeRoundRequest says once whether something has happened that only a new round can settle.
func (m *Machine) TakeRoundRequest() bool {
	want := m.wantRound || m.wantPlan && !m.joining
	if want {
		m.wantRound, m.wantPlan = false, false
	}
	return want
}

// ForceRound makes the next report differ from the last one, so that the coordinator starts a round, unless
// a plan is on its way anyhow: were every refused or unanswered commit to start a round of its own, rounds
// would outrun the commits.
func (m *Machine) ForceRound() {
	m.nonce++
	m.wantPlan = true
}
