package swap

import (
	"maps"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// Config says what is swapped for what.
type Config struct {
	From, To control.Selector // the old pool and the new one
	Min      int              // instances of the new pool that have to run; 0: so many that their capacity is that of the old pool
}

// Name is what the marks of this swap are of.
func (c Config) Name() string { return c.From.String() + " -> " + c.To.String() }

// Phase is how far a swap has come.
type Phase string

// The phases.
const (
	Waiting  Phase = "waiting"  // for the new pool; nothing is marked
	Draining Phase = "draining" // the old pool is marked
	Ended    Phase = "ended"    // the leave of each instance of the old pool has ended, in whatever way
)

// Swap follows one swap from look to look.
type Swap struct {
	cfg   Config
	begun bool
	kept  bool      // an instance of the old pool may have been kept by a cancellation
	since time.Time // when the new pool had the capacity first; zero: it has not
	old   map[string]*leaver
	pace  pace
}

// leaver is a run of an instance of the old pool.
type leaver struct {
	target control.Target
	watch  *control.Watch
	last   control.Progress
}

// New returns a swap that has seen nothing yet. Whether it has begun, the marks say.
func New(cfg Config) *Swap {
	return &Swap{cfg: cfg, old: make(map[string]*leaver), pace: pace{tasks: make(map[string]bool)}}
}

// Step is what a look at the group led to.
type Step struct {
	Phase Phase
	// Mark are the runs that are to be marked now, together, before the next look.
	Mark []control.Target
	// Again are those among Mark that were started anew in mid-swap.
	Again []string
	// Wait says what is missing, of Waiting.
	Wait string
	// Old is the leave of each instance of the old pool, in order of id. New is what runs of the new pool.
	Old []control.Progress
	New Pool
	// Tasks are those that the old pool has had since this was looked at, Moved those of them that others run now.
	Tasks, Moved int
	// Left is the time until all have moved, at the pace so far; negative: not known.
	Left time.Duration
}

// settle is how long a swap waits at most for a moment without a rebalance, once the new pool has the capacity.
const settle = 10 * time.Second

// Observe takes the present statuses of the group and the marks in force. An error says that the selectors do not name two pools.
func (s *Swap) Observe(statuses []control.Status, marks []control.Mark, now time.Time) (Step, error) {
	g := look(s.cfg, statuses, marks, now)
	if err := g.refuse(); err != nil {
		return Step{}, err
	}
	s.begun = s.begun || g.begun
	step := Step{New: g.pool(), Left: -1}
	switch {
	case len(g.old) == 0 && len(s.old) == 0:
		step.Phase, step.Old = Ended, g.left()
		return step, nil
	case !s.begun:
		if step.Wait = s.wait(g, step.New, now); step.Wait != "" {
			step.Phase = Waiting
			return step, nil
		}
		s.begun = true
	}
	step.Phase = Draining
	s.follow(&step, g, now)
	step.Tasks, step.Moved, step.Left = s.pace.observe(g, now)
	if len(step.Mark) == 0 && !slices.ContainsFunc(step.Old, func(p control.Progress) bool { return p.Outcome == control.Waiting }) {
		step.Phase = Ended
	}
	return step, nil
}

// follow brings the leaves of the old pool up to date, and finds those that have to be marked.
func (s *Swap) follow(step *Step, g *group, now time.Time) {
	hold := s.cancelled(g)
	for _, i := range g.old {
		t := control.Target{Instance: i.Instance, Incarnation: i.Incarnation}
		l, known := s.old[t.Instance]
		same := known && l.target.Incarnation.SameRun(t.Incarnation)
		switch {
		case same && l.last.Outcome == control.Lost: // silent for long, and here again: it goes on
			l.watch = control.NewWatch([]control.Target{l.target})
		case same, hold:
		default:
			s.old[t.Instance] = &leaver{target: t, watch: control.NewWatch([]control.Target{t})}
			if known {
				step.Again = append(step.Again, t.Instance)
			}
			if !g.marked(t) {
				step.Mark = append(step.Mark, t)
			}
		}
	}
	marks := append([]control.Mark{}, g.marks...) // not nil: that would say that they are not known
	for _, t := range step.Mark {
		marks = append(marks, control.Mark{Instance: t.Instance, Incarnation: t.Incarnation})
	}
	for _, id := range slices.Sorted(maps.Keys(s.old)) {
		l := s.old[id]
		l.last = l.watch.Observe(g.statuses, marks, now)[0]
		step.Old = append(step.Old, l.last)
	}
}

// cancelled reports whether one of the leaves was taken back, or may have been. Then nothing more is marked: what was started anew may stay
// with the others.
func (s *Swap) cancelled(g *group) bool {
	hold := false
	for _, l := range s.old {
		switch {
		case l.last.Outcome == control.Withdrawn:
			return true
		case l.last.Outcome != control.Waiting || g.marked(l.target):
		case g.replaced(l.target):
			// Its mark was taken back, or it has left and was started again, both since the last look. Not to mark it is what can be made good.
			s.kept = true
		case g.runs(l.target):
			hold = true
		}
	}
	return hold || s.kept
}

// wait says what is missing before the old pool can be marked; "": nothing.
func (s *Swap) wait(g *group, p Pool, now time.Time) string {
	if p.Missing != "" {
		s.since = time.Time{}
		return p.Missing
	}
	if s.since.IsZero() {
		s.since = now
	}
	// Marks that come while some have joined a round already, and others not, would have these two kinds leave one after the other.
	if !g.atRest() && now.Sub(s.since) < settle {
		return "a rebalance is under way"
	}
	return ""
}
