package sim

import (
	"fmt"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// joinState is where the membership client is.
type joinState uint8

const (
	outside joinState = iota // to join
	joining                  // join sent
	syncing                  // join answered
	inside                   // plan received; heartbeats
)

// clientStep lets the membership client do the next thing that it can. It reports whether it did anything.
func (p *process) clientStep() bool {
	w := p.world
	p.force = p.machine.TakeRoundRequest() || p.force
	if p.inbox != nil && (p.overdue || !w.breaks(PlanBeforeReport) || p.join != inside || w.group.state != preparing) {
		p.adopt()
		return true
	}
	switch p.join {
	case outside:
		return p.sendJoin()
	case joining:
		return p.takeJoinAnswer()
	case syncing:
		return p.sendSync()
	case inside:
		return p.heartbeat() || p.force && p.sendJoin()
	}
	return false
}

// sendJoin asks the machine for a report and joins with it.
func (p *process) sendJoin() bool {
	w, g := p.world, &p.world.group
	m := g.find(p.member)
	if p.member != "" && m == nil {
		w.note("%s joins: UNKNOWN_MEMBER_ID", p.name)
		p.lost()
		p.member = ""
		return true
	}
	p.force = false
	fresh := m == nil
	if fresh {
		m = &member{id: fmt.Sprintf("m%03d", w.memberNo[0]), proc: p}
		w.memberNo = w.memberNo[1:]
		g.members = append(g.members, m)
		p.member = m.id
	}
	m.truth = p.report()
	r := p.garble(m.truth)
	w.oldJoins = append(w.oldJoins, oldJoin{m.id, r})
	p.join = joining
	p.overdue = p.inbox != nil
	if g.join(m, r, fresh) {
		m.answered = true
	}
	w.note("%s joins as %s (%s): %s", p.name, m.id, reportString(r), g)
	return true
}

// report is the machine's report with what the machine does not know. Positions are coarse for copies
// that are being written.
func (p *process) report() assign.Report {
	r := p.machine.Report()
	r.Instance, r.Incarnation, r.Capacity, r.Rack = p.host.instance, p.incarnation, p.host.capacity, p.host.rack
	for _, list := range [][]assign.Copy{r.Learning, r.Standby} {
		for i := range list {
			if s := p.stores[p.world.taskOf(list[i].Task).index]; s != nil {
				list[i].Position = int64(s.pos/4) * 4
			}
		}
	}
	for _, t := range p.world.tasks {
		if s := p.stores[t.index]; s != nil && t.stateful && p.machine.Task(t.id).Phase == handover.Idle {
			r.Local = append(r.Local, assign.Copy{Task: t.id, Position: int64(s.pos)})
		}
	}
	return r
}

func (p *process) takeJoinAnswer() bool {
	m := p.world.group.find(p.member)
	switch {
	case m == nil || !m.answered && !m.joined:
		p.join = outside
	case m.answered:
		m.answered = false
		p.join, p.joinGen = syncing, p.world.group.gen
	default:
		return false
	}
	return true
}

func (p *process) sendSync() bool {
	w, g := p.world, &p.world.group
	m := g.find(p.member)
	switch {
	case m == nil:
		w.note("%s syncs: UNKNOWN_MEMBER_ID", p.name)
		p.lost()
		p.member = ""
	case p.joinGen != g.gen:
		w.note("%s syncs: ILLEGAL_GENERATION", p.name)
		p.lost()
	case g.state == preparing:
		p.join = outside // REBALANCE_IN_PROGRESS
	case g.state == completing && g.leader != m.id:
		return false
	default:
		if g.state == completing {
			w.lead()
		}
		p.join = inside
		p.inbox = &inbox{lease: handover.Lease{Member: m.id, Generation: g.gen}, plan: m.plan}
		p.lastPlan = m.plan
		w.note("%s receives plan %d: %s", p.name, g.gen, planString(m.plan))
	}
	return true
}

func (p *process) adopt() {
	in := p.inbox
	p.inbox, p.overdue = nil, false
	p.machine.Adopt(in.lease, in.plan)
	p.reconcile()
	if p.world.exactly {
		p.planForTransaction()
		p.reconcile()
	}
	p.world.note("%s adopts plan %d: %s", p.name, in.lease.Generation, p)
}

// heartbeat finds out what became of the group.
func (p *process) heartbeat() bool {
	w, g := p.world, &p.world.group
	switch {
	case g.find(p.member) == nil:
		w.note("%s hears UNKNOWN_MEMBER_ID", p.name)
		p.lost()
		p.member = ""
	case p.joinGen != g.gen:
		w.note("%s hears ILLEGAL_GENERATION", p.name)
		p.lost()
	case g.state == preparing:
		return p.sendJoin()
	default:
		return false
	}
	return true
}

// lost drops what needs a lease: the group removed this member, or its own clock says that it may have.
func (p *process) lost() {
	p.inbox, p.overdue = nil, false
	p.join = outside
	p.machine.Lost()
	if p.world.exactly {
		p.abortTransaction(false, nil)
	}
	p.reconcile()
	p.world.note("%s loses its lease: %s", p.name, p)
}

// leaveFormer removes the former self from the group once the own join is pending.
func (p *process) leaveFormer() bool {
	h := p.host
	if h.former == "" || p.join == outside {
		return false
	}
	m := p.world.group.find(h.former)
	h.former = ""
	if m == nil || m.id == p.member {
		return false
	}
	p.world.group.remove(m)
	p.world.note("%s removes its former self %s: %s", p.name, m.id, &p.world.group)
	return true
}
