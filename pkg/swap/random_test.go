package swap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
)

// player is a group that obeys marks and is restarted, killed and cancelled at random.
type player struct {
	r         *rand.Rand
	now       time.Time
	statuses  []control.Status
	marks     []control.Mark
	runs      int64
	cancelled bool
	history   []string
}

func (p *player) start(id, pool string) {
	p.runs++
	s := control.Status{
		Instance: id, Labels: map[string]string{"pool": pool}, State: control.Running, Incarnation: assign.Incarnation{StartMs: p.runs}, Generation: 1,
	}
	p.statuses = slices.DeleteFunc(p.statuses, func(o control.Status) bool { return o.Instance == id })
	p.statuses = append(p.statuses, s)
}

func (p *player) unmark(id string) {
	p.marks = slices.DeleteFunc(p.marks, func(m control.Mark) bool { return m.Instance == id })
}

func (p *player) markOf(s control.Status) bool {
	return slices.ContainsFunc(p.marks, func(m control.Mark) bool {
		return m.Instance == s.Instance && m.Incarnation.SameRun(s.Incarnation)
	})
}

// step lets something happen, and time pass.
func (p *player) step(trouble bool) {
	p.now = p.now.Add(time.Duration(p.r.IntN(2000)) * time.Millisecond)
	i := p.r.IntN(len(p.statuses))
	s := &p.statuses[i]
	what := p.r.IntN(6)
	switch {
	case s.Left != "":
		if trouble && what == 0 && s.Labels["pool"] == "blue" {
			p.say("%s is started again", s.Instance)
			p.start(s.Instance, "blue")
		}
	case trouble && what == 1 && s.Labels["pool"] == "blue":
		p.say("%s loses its state and restarts", s.Instance)
		p.start(s.Instance, "blue")
	case trouble && what == 2:
		p.say("%s restarts", s.Instance)
		s.Incarnation.Starts++
	case trouble && what == 3 && p.r.IntN(10) == 0 && len(p.marks) > 0:
		p.say("cancelled")
		p.marks, p.cancelled = nil, true
	case s.State == control.Running && p.markOf(*s):
		s.State = control.Draining
	case s.State == control.Draining && !p.markOf(*s):
		s.State = control.Running
	case s.State == control.Draining && what > 3:
		p.say("%s has left", s.Instance)
		s.State, s.Left = control.Drained, control.LeftDrained
		p.unmark(s.Instance)
	}
	for i := range p.statuses {
		if p.statuses[i].Left == "" {
			p.statuses[i].Seen = p.now
		}
	}
}

func (p *player) say(format string, args ...any) {
	p.history = append(p.history, fmt.Sprintf(format, args...))
}

// Whatever happens: only the old pool is marked, each run once by one command, all that run at the first time; nothing after a cancellation was seen; a
// swap has not ended while a run of the old pool that was not kept is there; and it ends when the trouble does.
func TestRandomSwaps(t *testing.T) {
	for seed := range uint64(500) {
		p := &player{r: rand.New(rand.NewPCG(seed, 7)), now: time.UnixMilli(1_700_000_000_000)}
		olds := 1 + p.r.IntN(4)
		for i := range olds {
			p.start(fmt.Sprint("blue-", i), "blue")
		}
		cfg := Config{From: control.Selector{"pool": "blue"}, To: control.Selector{"pool": "green"}}
		swap := New(cfg)
		asked := map[int64]bool{}
		if ended := p.play(t, swap, cfg, olds, asked); !ended && !t.Failed() {
			t.Errorf("it does not end")
		}
		if t.Failed() {
			t.Fatalf("seed %d: %q\n%+v\nmarks %+v", seed, p.history, p.statuses, p.marks)
		}
	}
}

func (p *player) play(t *testing.T, swap *Swap, cfg Config, olds int, asked map[int64]bool) (ended bool) {
	t.Helper()
	const troubled, steps = 100, 1000
	for i := range steps {
		if i > 5 && i%3 == 0 && i/3-2 < olds {
			p.start(fmt.Sprint("green-", i/3-2), "green")
		}
		p.step(i < troubled)
		cancelled := p.cancelled
		step, err := swap.Observe(slices.Clone(p.statuses), slices.Clone(p.marks), p.now)
		if err != nil {
			t.Error(err)
			return false
		}
		if step.Phase == Waiting && len(step.Mark) > 0 || len(asked) == 0 && len(step.Mark) > 0 && step.New.Missing != "" {
			t.Errorf("%v are marked before the new pool is there", step.Mark)
		}
		if cancelled && len(step.Mark) > 0 {
			t.Errorf("%v are marked after a cancellation", step.Mark)
		}
		for _, target := range step.Mark {
			if target.Instance[:4] != "blue" || asked[target.Incarnation.StartMs] {
				t.Errorf("%v is marked, again or wrongly", target)
			}
			asked[target.Incarnation.StartMs] = true
			p.say("%s is marked", target.Instance)
			p.unmark(target.Instance) // the last word for an instance counts
			p.marks = append(p.marks, control.Mark{Instance: target.Instance, Incarnation: target.Incarnation, Swap: cfg.Name()})
		}
		if step.Phase == Ended {
			for _, s := range p.statuses {
				if s.Labels["pool"] == "blue" && s.Left == "" && !p.cancelled {
					t.Errorf("it has ended, and %s is there", s.Instance)
				}
			}
			return true
		}
	}
	return false
}
