package group

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// crowd is a large group whose members have real memberships and real handover machines, and make-believe tasks: state
// that is warm or not, and offsets kept here.
type crowd struct {
	*cluster
	cfg Config

	mu        sync.Mutex
	active    map[assign.TaskID]string // who runs each task
	committed map[assign.TaskID]handover.Metadata
	takers    map[assign.TaskID]*hand // who waits for a token
	moved     int                     // tasks taken from a living owner
	rounds    int32                   // newest generation
	members   []*hand
	wrong     []string
}

// hand is a member of the crowd.
type hand struct {
	c     *crowd
	name  string
	m     *Membership
	stop  context.CancelFunc
	ended chan error

	machine    *handover.Machine // guarded by the crowd's lock
	generation int32
}

var _ Handler = (*hand)(nil)

func (c *crowd) join(n int) (joined []*hand) {
	for range n {
		h := &hand{c: c, name: fmt.Sprintf("member-%03d", len(c.members)), machine: handover.New(), ended: make(chan error, 1)}
		cfg := c.cfg
		cfg.ClientID, cfg.Coordinator, cfg.Options = h.name, c.coordinator(cfg.Group), []kgo.Opt{kgo.SeedBrokers(c.brokers...)}
		var err error
		if h.m, err = NewMembership(cfg, h); err != nil {
			c.t.Fatal(err)
		}
		c.members, joined = append(c.members, h), append(joined, h)
	}
	for _, h := range joined {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		go func() { h.ended <- h.m.Run(ctx) }()
		c.t.Cleanup(func() { stop(); <-h.ended })
	}
	return joined
}

func (h *hand) Report() assign.Report {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.report()
}

func (h *hand) report() assign.Report {
	r := h.machine.Report()
	r.Instance, r.Capacity = h.name, 1
	return r
}

func (h *hand) Plan(memberID string, generation int32, plan assign.MemberPlan) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.machine.Adopt(handover.Lease{Member: memberID, Generation: generation}, plan)
	h.generation, h.c.rounds = generation, max(h.c.rounds, generation)
	for t, name := range h.c.active {
		if p := h.machine.Task(t).Phase; name == h.name && p != handover.Running && p != handover.Releasing {
			delete(h.c.active, t) // it was told nothing of it any more
		}
	}
	for _, t := range h.machine.Tasks() {
		h.work(t)
	}
	h.wish()
}

func (*hand) Assigned(string, int32, []assign.TaskID) {}

func (*hand) Revoke(_ func(assign.TaskID) bool, done func()) { done() }

func (h *hand) Lost(err error) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.c.wrong = append(h.c.wrong, fmt.Sprintf("%s: %v", h.name, err))
}

// work does at once what the machine says of a task, as far as it can be done.
func (h *hand) work(t assign.TaskID) {
	c, st := h.c, h.machine.Task(t)
	switch st.Phase {
	case handover.Looking:
		h.machine.Looked(t, st.Epoch, c.committed[t])
		if h.machine.Task(t).Phase == handover.Releasing {
			h.work(t)
		}
	case handover.Releasing:
		lease, ok := h.machine.ReleaseSent(t, st.Epoch)
		if !ok {
			return
		}
		delete(c.active, t)
		c.committed[t] = handover.Metadata{Committer: lease.Member, Token: &handover.Token{Release: st.Release}}
		h.machine.ReleaseDone(t, st.Epoch, handover.Acknowledged)
		if taker := c.takers[t]; taker != nil {
			taker.work(t)
			taker.wish()
		}
	case handover.Taking:
		c.takers[t] = h
		if h.machine.TokenSeen(t, st.Epoch, c.committed[t].Token) {
			delete(c.takers, t)
			c.moved++
			h.work(t)
		}
	case handover.Opening:
		if other := c.active[t]; other != "" {
			c.wrong = append(c.wrong, fmt.Sprintf("%s runs on %s and on %s", t, other, h.name))
		}
		c.active[t] = h.name
		h.machine.Opened(t, st.Epoch, c.committed[t])
	default: // nothing to do
	}
}

func (h *hand) wish() {
	if h.machine.TakeRoundRequest() {
		h.m.ForceRound()
	}
}

// warm lets one more learner of each member turn ready.
func (c *crowd) warm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.members {
		for _, t := range h.machine.Tasks() {
			if st := h.machine.Task(t); st.Phase == handover.Learning && !st.Ready {
				h.machine.CopyReady(t, st.Epoch, true)
				h.wish()
				break
			}
		}
	}
}

func (h *hand) leave() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.machine.SetLeaving(true, 0)
	h.wish()
}

func (h *hand) drained() bool {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.machine.Drained()
}

// rests says whether all of these members, and no others, run all tasks under the plan of one round, evenly, and another
// round would change nothing.
func (c *crowd) rests(members []*hand) bool {
	c.warm()
	c.mu.Lock()
	defer c.mu.Unlock()
	tasks := tasksOf(c.cfg.Subtopologies)
	in := assign.Input{Generation: c.rounds + 1, Tasks: tasks, Policy: c.cfg.Policy}
	for _, h := range members {
		if h.generation != c.rounds {
			return false
		}
		lease, leased := h.machine.Lease()
		if !leased {
			return false
		}
		own := 0
		for _, t := range h.machine.Tasks() {
			switch h.machine.Task(t).Phase {
			case handover.Running:
				own++
			case handover.Released:
			default:
				return false
			}
		}
		if even := len(tasks) / len(members); own < even || own > even+1 {
			return false
		}
		in.Members = append(in.Members, assign.Member{ID: lease.Member, Report: h.report()})
	}
	for i, p := range assign.Assign(in) {
		n := slices.IndexFunc(in.Members, func(m assign.Member) bool { return m.ID == i })
		if len(p.Take)+len(p.Release)+len(p.Learn) > 0 || !slices.Equal(p.Own, in.Members[n].Owned) {
			return false
		}
	}
	return len(c.active) == len(tasks)
}

// A group of 60 members with 2,000 tasks grows to 100 and shrinks again. Tasks are never run twice; hundreds of learners that
// turn ready at many members cause few rounds; in the end the group rests.
func TestCrowd(t *testing.T) {
	k := fakeCluster(t)
	c := &crowd{
		cluster: k, cfg: k.config(2000, true),
		active: map[assign.TaskID]string{}, committed: map[assign.TaskID]handover.Metadata{}, takers: map[assign.TaskID]*hand{},
	}
	c.cfg.Heartbeat = 200 * time.Millisecond
	stay := c.join(60)
	eventually(t, "60 members share 2,000 tasks", func() bool { return c.rests(stay) })

	since, moved := c.progress()
	all := append(slices.Clone(stay), c.join(40)...)
	eventually(t, "100 members share 2,000 tasks", func() bool { return c.rests(all) })
	rounds, moves := c.progress()
	rounds, moves = rounds-since, moves-moved
	t.Logf("from 60 members to 100: %d tasks moved in %d rounds", moves, rounds)
	c.few(rounds, moves)

	since, moved = c.progress()
	for _, h := range all[60:] {
		h.leave()
	}
	eventually(t, "40 members have given all away", func() bool {
		c.warm()
		return !slices.ContainsFunc(all[60:], func(h *hand) bool { return !h.drained() })
	})
	var leaving sync.WaitGroup
	for _, h := range all[60:] {
		leaving.Go(func() {
			if err := h.m.Leave(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	leaving.Wait()
	eventually(t, "60 members share 2,000 tasks again", func() bool { return c.rests(stay) })
	rounds, moves = c.progress()
	rounds, moves = rounds-since, moves-moved
	t.Logf("from 100 members to 60: %d tasks moved in %d rounds", moves, rounds)
	c.few(rounds, moves)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.wrong {
		t.Error(w)
	}
}

// few fails the test unless 800 tasks moved, or little more, as not all members join or leave in one round, and that in few rounds.
func (c *crowd) few(rounds int32, moves int) {
	c.t.Helper()
	if moves < 800 || moves > 1000 {
		c.t.Errorf("%d tasks moved, 800 have to", moves)
	}
	if rounds > 40 {
		c.t.Errorf("%d rounds for %d moves", rounds, moves)
	}
}

func (c *crowd) progress() (rounds int32, moved int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rounds, c.moved
}
