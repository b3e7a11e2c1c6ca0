package swap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// ErrNobody is returned when no instance of the old pool runs, or has ever run.
var ErrNobody = errors.New("no instance of the old pool")

// ErrOverlap is returned when an instance is of both pools.
var ErrOverlap = errors.New("the pools overlap")

// group is one look at the group.
type group struct {
	cfg      Config
	statuses []control.Status
	marks    []control.Mark
	view     control.View
	old, to  []control.Status // those that run, in order of id
	others   []control.Status // that run and are of neither pool
	gone     []control.Status // of the old pool
	both     []string
	begun    bool // an instance of the old pool is marked by this swap
}

func look(cfg Config, statuses []control.Status, marks []control.Mark, now time.Time) *group {
	g := &group{cfg: cfg, statuses: statuses, marks: marks, view: control.NewView("", statuses, now)}
	for _, s := range statuses {
		from, to := cfg.From.Matches(s.Labels), cfg.To.Matches(s.Labels)
		switch {
		case s.Stale(now) || s.Left != "":
			if from {
				g.gone = append(g.gone, s)
			}
			continue
		case from && to:
			g.both = append(g.both, s.Instance)
		case from:
			g.old = append(g.old, s)
		case to:
			g.to = append(g.to, s)
		default:
			g.others = append(g.others, s)
		}
	}
	for _, all := range [][]control.Status{g.old, g.to, g.gone} {
		slices.SortFunc(all, func(a, b control.Status) int { return cmp.Compare(a.Instance, b.Instance) })
	}
	for _, s := range g.old {
		if m, ok := g.mark(s.Instance); ok && m.Swap == cfg.Name() && m.Incarnation.SameRun(s.Incarnation) {
			g.begun = true
		}
	}
	return g
}

// refuse says what is wrong with the selectors.
func (g *group) refuse() error {
	if len(g.both) > 0 {
		return fmt.Errorf("%w: %s matches both %s and %s: give the new instances a label of their own", ErrOverlap, strings.Join(g.both, ", "), g.cfg.From, g.cfg.To)
	}
	if len(g.old) > 0 || len(g.gone) > 0 {
		return nil
	}
	var there []string
	for _, s := range append(slices.Clone(g.to), g.others...) {
		there = append(there, s.Instance+" ("+control.Selector(s.Labels).String()+")")
	}
	if len(there) == 0 {
		return fmt.Errorf("%w: nothing matches %s, and no other instance is running", ErrNobody, g.cfg.From)
	}
	slices.Sort(there)
	return fmt.Errorf("%w: nothing matches %s; running are %s", ErrNobody, g.cfg.From, strings.Join(there, ", "))
}

func (g *group) mark(instance string) (control.Mark, bool) {
	i := slices.IndexFunc(g.marks, func(m control.Mark) bool { return m.Instance == instance })
	if i < 0 {
		return control.Mark{}, false
	}
	return g.marks[i], true
}

// marked reports whether this run is marked, by whomever.
func (g *group) marked(t control.Target) bool {
	m, ok := g.mark(t.Instance)
	return ok && m.Incarnation.SameRun(t.Incarnation)
}

// runs reports whether this run of an instance of the old pool is there.
func (g *group) runs(t control.Target) bool {
	return slices.ContainsFunc(g.old, func(s control.Status) bool {
		return s.Instance == t.Instance && s.Incarnation.SameRun(t.Incarnation)
	})
}

// replaced reports whether another run of this instance is there.
func (g *group) replaced(t control.Target) bool {
	return slices.ContainsFunc(g.old, func(s control.Status) bool {
		return s.Instance == t.Instance && !s.Incarnation.SameRun(t.Incarnation)
	})
}

// atRest reports whether all members have the plan of one rebalance.
func (g *group) atRest() bool {
	for _, all := range [][]control.Status{g.old, g.to, g.others} {
		for _, s := range all {
			if s.Generation != g.view.Generation && (s.State == control.Running || s.State == control.Draining) {
				return false
			}
		}
	}
	return true
}

// left are the ends of the leaves of an old pool of which nothing runs any more.
func (g *group) left() []control.Progress {
	var all []control.Progress
	for _, s := range g.gone {
		p := control.Progress{Target: control.Target{Instance: s.Instance, Incarnation: s.Incarnation}, Outcome: control.Lost}
		switch s.Left {
		case control.LeftDrained:
			p.Outcome = control.Complete
		case control.LeftTimeout, control.LeftNow:
			p.Outcome = control.TimedOut
		}
		all = append(all, p)
	}
	return all
}

// Pool is what runs of the new pool, and what has to.
type Pool struct {
	Running  int    `json:"running"`  // instances that take tasks
	Starting int    `json:"starting"` // not there yet
	Capacity int    `json:"capacity"` // of the running ones together
	Wanted   int    `json:"wanted"`   // capacity that has to be there; 0: the number of instances counts
	Min      int    `json:"min"`      // instances that have to run
	Missing  string `json:"-"`        // "": nothing
}

// pool looks at the new pool. Instances of it that are leaving do not count.
func (g *group) pool() Pool {
	p := Pool{Min: max(1, g.cfg.Min)}
	for _, s := range g.to {
		switch {
		case g.marked(control.Target{Instance: s.Instance, Incarnation: s.Incarnation}):
		case s.State == control.Running:
			p.Running++
			p.Capacity += capacity(s)
		case s.State == control.Starting:
			p.Starting++
		}
	}
	if g.cfg.Min == 0 {
		for _, s := range g.old {
			p.Wanted += capacity(s)
		}
	}
	if p.Running < p.Min || p.Capacity < p.Wanted {
		p.Missing = fmt.Sprintf("%s: %d running", g.cfg.To, p.Running)
		if p.Starting > 0 {
			p.Missing += fmt.Sprintf(", %d starting", p.Starting)
		}
		if p.Wanted > 0 {
			p.Missing += fmt.Sprintf(", capacity %d of the %d that %s has", p.Capacity, p.Wanted, g.cfg.From)
		} else {
			p.Missing += fmt.Sprintf(", at least %d needed", p.Min)
		}
	}
	return p
}

// capacity of an instance; one that does not tell counts as the default.
func capacity(s control.Status) int { return int(max(1, s.Capacity)) }
