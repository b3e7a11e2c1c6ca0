package handover

import "github.com/streamworker/streamworker/pkg/group/assign"

// Report is what the instance claims at a join: what it does at this moment. The caller adds what the
// machine does not know: names, labels, positions of copies, local state.
func (m *Machine) Report() assign.Report {
	m.markJoined, m.joining = m.leaving, true
	r := assign.Report{Leaving: m.leaving, DeadlineMs: m.deadline, Nonce: m.nonce, Stuck: m.stuck}
	sayReady := !m.Stable || m.all(Learning)
	for _, t := range m.Tasks() {
		s := m.tasks[t]
		switch s.Phase {
		case Opening, Running:
			r.Owned = append(r.Owned, t)
		case Looking, Releasing, Refused, Unanswered:
			r.Releasing = append(r.Releasing, assign.Handover{Task: t, Release: s.Release})
		case Taking:
			r.Taking = append(r.Taking, assign.Handover{Task: t, Release: s.Release})
		case Learning:
			r.Learning = append(r.Learning, assign.Copy{Task: t})
			if s.said = s.Ready && sayReady; s.said {
				r.Ready = append(r.Ready, t)
			}
		case Standby:
			r.Standby = append(r.Standby, assign.Copy{Task: t})
			if s.said = s.Ready; s.said {
				r.Ready = append(r.Ready, t)
			}
		case Idle, Released:
		}
	}
	return r
}
