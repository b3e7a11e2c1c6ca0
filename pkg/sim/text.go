package sim

import (
	"fmt"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// String is what the process does, for traces.
func (p *process) String() string {
	var b strings.Builder
	l, ok := p.machine.Lease()
	fmt.Fprintf(&b, "%s@%d", l.Member, l.Generation)
	if !ok {
		b.WriteString(" (lost)")
	}
	if p.machine.Leaving() {
		b.WriteString(" leaving")
	}
	for _, t := range p.world.tasks {
		st := p.machine.Task(t.id)
		if st.Phase == handover.Idle {
			continue
		}
		fmt.Fprintf(&b, " %s:%s", t.id, st.Phase)
		if st.Release != (assign.ReleaseID{}) {
			fmt.Fprintf(&b, "[%s]", idString(st.Release))
		}
		if st.Ready {
			b.WriteString("!")
		}
		if r := p.runs[t.index]; r != nil {
			fmt.Fprintf(&b, "@%v", r.pos)
		}
	}
	if p.world.exactly {
		fmt.Fprintf(&b, " txn:%s", p.txn.phase)
	}
	return b.String()
}

func idString(id assign.ReleaseID) string { return fmt.Sprintf("%d/%s", id.Generation, id.Owner) }

// reportString is a report as a trace shows it.
func reportString(r assign.Report) string {
	var b strings.Builder
	words(&b, "owned", r.Owned, assign.TaskID.String)
	words(&b, "releasing", r.Releasing, handoverString)
	words(&b, "taking", r.Taking, handoverString)
	words(&b, "learning", r.Learning, copyString)
	words(&b, "ready", r.Ready, assign.TaskID.String)
	words(&b, "standby", r.Standby, copyString)
	words(&b, "local", r.Local, copyString)
	if r.Leaving {
		b.WriteString("leaving ")
	}
	fmt.Fprintf(&b, "nonce %d", r.Nonce)
	return b.String()
}

// planString is a member's plan as a trace shows it.
func planString(p assign.MemberPlan) string {
	var b strings.Builder
	words(&b, "own", p.Own, assign.TaskID.String)
	words(&b, "take", p.Take, handoverString)
	words(&b, "release", p.Release, handoverString)
	words(&b, "learn", p.Learn, assign.TaskID.String)
	words(&b, "standby", p.Standby, assign.TaskID.String)
	if p.Superseded {
		b.WriteString("superseded")
	}
	return strings.TrimSpace(b.String())
}

func handoverString(h assign.Handover) string {
	return h.Task.String() + "[" + idString(h.Release) + "]"
}

func copyString(c assign.Copy) string { return fmt.Sprintf("%s(%d)", c.Task, c.Position) }

func words[T any](b *strings.Builder, name string, list []T, text func(T) string) {
	if len(list) == 0 {
		return
	}
	b.WriteString(name)
	for _, x := range list {
		b.WriteString(" " + text(x))
	}
	b.WriteString("; ")
}
