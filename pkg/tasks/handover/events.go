package handover

import "github.com/streamworker/streamworker/pkg/group/assign"

// at returns the task's state if the event belongs to the work that is under way in one of the phases.
func (m *Machine) at(t assign.TaskID, epoch uint64, phases ...Phase) *TaskState {
	s := m.tasks[t]
	if s == nil || s.Epoch != epoch {
		return nil
	}
	for _, p := range phases {
		if s.Phase == p {
			return s
		}
	}
	return nil
}

// TokenSeen says that the committed offset of a task being taken carries the token of its release. It
// reports whether the task may go on to open: the order may have changed meanwhile.
func (m *Machine) TokenSeen(t assign.TaskID, epoch uint64, tok *Token) bool {
	s := m.at(t, epoch, Taking)
	if s == nil || !m.leased || tok == nil || tok.Release != s.Release {
		return false
	}
	// Others learn of it in a round: the next step may depend on it, such as a standby where the task ran
	// before, or the next move of a stateless task.
	s.Phase, m.wantRound = Opening, true
	return true
}

// Opened says that the task's state holds what its committed offset covers, with the metadata that was found
// there. It reports whether the task may process: the order may have changed meanwhile.
func (m *Machine) Opened(t assign.TaskID, epoch uint64, found Metadata) bool {
	s := m.at(t, epoch, Opening)
	if s == nil || !m.leased {
		return false
	}
	s.Phase, s.after, s.found = Running, found.LastRelease(), true
	return true
}

// Failed says that the work on the task ended in an error. An owned task is to be opened anew; a release
// that could not be made waits for the next plan, which is asked for; a copy starts again.
func (m *Machine) Failed(t assign.TaskID, epoch uint64) {
	s := m.tasks[t]
	if s == nil || s.Epoch != epoch {
		return
	}
	switch s.Phase {
	case Opening, Running:
		id := s.Release
		s.enter(Opening)
		// A task that was taken stays started on this order: a repeated `take` means `own`.
		s.Release = id
	case Looking, Releasing:
		s.Phase, s.Epoch = Refused, s.Epoch+1
		m.ForceRound()
	case Learning, Standby, Taking:
		s.Epoch++
		s.Ready = false
	case Idle, Refused, Unanswered, Released:
	}
}

// Looked gives the committed metadata that an owner found which was told to release again. It moves the task
// to Released if the release is there, or a commit that came after it, else to Releasing.
func (m *Machine) Looked(t assign.TaskID, epoch uint64, found Metadata) {
	s := m.at(t, epoch, Looking)
	if s == nil || !m.leased {
		return
	}
	// While this is the owner, only its own release can change what the task last changed hands by.
	if last := found.LastRelease(); last == s.Release || s.found && last != s.after {
		s.released()
		// Without the token somebody has run the task since. If that was not the present taker, which waits for
		// the token, it must be told `own`.
		m.wantRound = m.wantRound || found.Token == nil || last != s.Release
		return
	}
	s.after, s.found = found.LastRelease(), true
	s.Phase = Releasing
}

func (s *TaskState) released() { s.Phase, s.Epoch = Released, s.Epoch+1 }

// ReleaseSent says that the release is on its way. It reports whether it may be sent: the order may
// have changed, or the lease ended.
func (m *Machine) ReleaseSent(t assign.TaskID, epoch uint64) (Lease, bool) {
	s := m.at(t, epoch, Releasing)
	if s == nil || !m.leased {
		return Lease{}, false
	}
	return m.lease, true
}

// ReleaseDone gives the outcome of a release.
func (m *Machine) ReleaseDone(t assign.TaskID, epoch uint64, o Outcome) {
	s := m.at(t, epoch, Releasing)
	if s == nil {
		return // a later plan has decided: if it told again, the owner looks first
	}
	switch o {
	case Acknowledged:
		s.released()
	case Declined:
		s.Phase = Refused
		m.ForceRound()
	case Unknown:
		s.Phase = Unanswered
		m.ForceRound()
	}
}

// CommitSent says that an ordinary commit of the tasks is on its way under the present lease.
func (m *Machine) CommitSent(tasks []assign.TaskID) {
	for _, t := range tasks {
		if s := m.tasks[t]; s != nil && m.leased {
			s.pending = m.lease
		}
	}
}

// CommitDone gives the outcome of an ordinary commit that was sent under the given lease.
func (m *Machine) CommitDone(tasks []assign.TaskID, under Lease, o Outcome) {
	if !m.leased || m.lease != under {
		return // under a later lease the broker refuses the former one's requests
	}
	for _, t := range tasks {
		s := m.tasks[t]
		switch {
		case s == nil:
		case o == Unknown:
			s.pending = under
		case s.pending == under:
			s.pending = Lease{}
		}
	}
	if o == Unknown {
		m.ForceRound()
	}
}

// CopyReady says whether a learner or a standby has caught up. A learner asks for a round then; a standby
// only says so when it is asked, or, where racks count, when all of the instance's have.
func (m *Machine) CopyReady(t assign.TaskID, epoch uint64, ready bool) {
	s := m.at(t, epoch, Learning, Standby)
	if s == nil || s.Ready == ready {
		return
	}
	s.Ready = ready
	if ready && s.Phase == Learning {
		m.sayReady()
	}
	if ready && s.Phase == Standby && m.Racks && m.all(Standby) {
		m.wantRound = m.wantRound || m.unsaid(Standby)
	}
}

// sayReady asks for a round if the next report can say of more learners than the last one that they are
// ready. In stable mode it says so of none before it says so of all.
func (m *Machine) sayReady() {
	if !m.Stable || m.all(Learning) {
		m.wantRound = m.wantRound || m.unsaid(Learning)
	}
}

// all reports whether all copies of a kind have caught up.
func (m *Machine) all(p Phase) bool {
	for _, s := range m.tasks {
		if s.Phase == p && !s.Ready {
			return false
		}
	}
	return true
}

// unsaid reports whether a copy of a kind has caught up that the last report did not say so of.
func (m *Machine) unsaid(p Phase) bool {
	for _, s := range m.tasks {
		if s.Phase == p && s.Ready && !s.said {
			return true
		}
	}
	return false
}
