package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Target is a run of an instance that was marked as leaving.
type Target struct {
	Instance    string
	Incarnation assign.Incarnation
}

// Outcome is how far the leave of a target has come.
type Outcome int

// The outcomes. All but Waiting are final.
const (
	Waiting   Outcome = iota // not marked yet, or draining
	Complete                 // drained
	TimedOut                 // left with tasks not handed over: at the deadline, or at once as asked
	Withdrawn                // cancelled
	Lost                     // ended without leaving: killed, or stopped otherwise
)

// String names the outcome for output.
func (o Outcome) String() string {
	return [...]string{"waiting", "drained", "left with tasks not handed over", "cancelled", "gone before it was drained"}[o]
}

// Progress is the state of one target's leave.
type Progress struct {
	Target
	Outcome Outcome
	// Of a waiting one.
	Tasks    []TaskView // still on the target, in order of id
	Lag      map[string]Learning
	Draining bool      // it has begun
	Deadline time.Time // when it ends at the latest; zero: nothing bounds it
}

// Watch follows the leave of targets from one set of statuses to the next.
type Watch struct {
	targets  []Target
	drains   map[string]bool      // seen draining
	unmarked map[string]time.Time // since when running without a mark
	final    map[string]Outcome
}

// unmarkedFor is how long an instance has to be seen running without its mark to count as cancelled. One
// with nothing to give removes its mark before its status says that it has drained.
const unmarkedFor = 5 * time.Second

// NewWatch watches the leaves of the targets.
func NewWatch(targets []Target) *Watch {
	return &Watch{targets: targets, drains: make(map[string]bool), unmarked: make(map[string]time.Time), final: make(map[string]Outcome)}
}

// Observe takes the present statuses of the group and says where each target is, in the order of targets.
// Marks are those in force, nil when they are not known.
func (w *Watch) Observe(statuses []Status, marks []Mark, now time.Time) []Progress {
	view := NewView("", statuses, now)
	out := make([]Progress, 0, len(w.targets))
	for _, t := range w.targets {
		p := Progress{Target: t, Outcome: w.final[t.Instance]}
		if p.Outcome == Waiting {
			p.Outcome = w.judge(t, statuses, marks, now)
		}
		if p.Outcome == Waiting {
			p.Tasks, p.Lag = held(view, t.Instance)
			p.Draining, p.Deadline = drainOf(view, t.Instance)
		} else {
			w.final[t.Instance] = p.Outcome
		}
		out = append(out, p)
	}
	return out
}

func (w *Watch) judge(t Target, statuses []Status, marks []Mark, now time.Time) Outcome {
	i := slices.IndexFunc(statuses, func(s Status) bool { return s.Instance == t.Instance })
	if i < 0 {
		return Lost
	}
	s := statuses[i]
	switch {
	case !s.Incarnation.SameRun(t.Incarnation):
		return Lost
	case s.Left == LeftDrained || s.State == Drained:
		return Complete
	case s.Left != "":
		return TimedOut
	case s.Stale(now):
		return Lost
	case s.State == Draining:
		w.drains[t.Instance] = true
	case s.State == Running && w.drains[t.Instance]:
		return Withdrawn
	case s.State == Running && marks != nil && !marked(marks, t):
		since, seen := w.unmarked[t.Instance]
		if !seen {
			w.unmarked[t.Instance] = now
		} else if now.Sub(since) >= unmarkedFor {
			return Withdrawn
		}
	}
	return Waiting
}

func marked(marks []Mark, t Target) bool {
	return slices.ContainsFunc(marks, func(m Mark) bool {
		return m.Instance == t.Instance && m.Incarnation.SameRun(t.Incarnation)
	})
}

// drainOf says whether an instance drains, and until when at most.
func drainOf(v View, instance string) (drains bool, deadline time.Time) {
	for _, i := range v.Instances {
		if i.ID == instance && i.State == Draining {
			return true, i.Deadline
		}
	}
	return false, time.Time{}
}

// held is what an instance has not handed over, with the learners' progress by task.
func held(v View, instance string) ([]TaskView, map[string]Learning) {
	var tasks []TaskView
	lag := make(map[string]Learning)
	for _, t := range v.Tasks {
		if t.Active != nil && *t.Active == instance {
			tasks = append(tasks, t)
		}
	}
	for _, i := range v.Instances {
		for _, l := range i.Learning {
			lag[l.Task] = l
		}
	}
	return tasks, lag
}

// Selector picks instances by labels: each of its pairs must be there.
type Selector map[string]string

// ParseSelector reads k=v[,k=v...].
func ParseSelector(s string) (Selector, error) {
	sel := make(Selector)
	for pair := range strings.SplitSeq(s, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("selector %q: want label=value[,label=value...], e.g. pool=blue", s)
		}
		if old, twice := sel[k]; twice && old != v {
			return nil, fmt.Errorf("selector %q: label %s cannot be both %q and %q", s, k, old, v)
		}
		sel[k] = v
	}
	return sel, nil
}

// String is the form that ParseSelector reads, in order of label.
func (sel Selector) String() string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(sel)) {
		pairs = append(pairs, k+"="+sel[k])
	}
	return strings.Join(pairs, ",")
}

// Matches reports whether labels satisfy the selector.
func (sel Selector) Matches(labels map[string]string) bool {
	for k, v := range sel {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Pick returns the running instances that a command means: the one with the id, or all that match the
// selector. Naming none that runs is an error that says which there are.
func Pick(statuses []Status, instance string, sel Selector, now time.Time) ([]Target, error) {
	var picked []Target
	var running []string
	for _, s := range statuses {
		gone := s.Stale(now) || s.Left != ""
		if !gone {
			running = append(running, s.Instance)
		}
		switch {
		case instance != "" && s.Instance == instance && gone:
			return nil, fmt.Errorf("instance %s is gone: last seen at %s", instance, s.Seen.Format(time.RFC3339))
		case instance != "" && s.Instance == instance, instance == "" && !gone && sel.Matches(s.Labels):
			picked = append(picked, Target{Instance: s.Instance, Incarnation: s.Incarnation})
		}
	}
	slices.SortFunc(picked, func(a, b Target) int { return cmp.Compare(a.Instance, b.Instance) })
	if len(picked) > 0 {
		return picked, nil
	}
	what := "no instance matches the selector"
	if instance != "" {
		what = "no instance " + instance
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("%s: none is running", what)
	}
	slices.Sort(running)
	return nil, fmt.Errorf("%s: running are %s", what, strings.Join(running, ", "))
}

// Staying are the ids of the instances that would be left to take tasks when the targets leave too: those that run and are not
// leaving.
func Staying(statuses []Status, targets []Target, now time.Time) []string {
	var ids []string
	for _, s := range statuses {
		leaves := s.State == Draining || s.State == Drained ||
			slices.ContainsFunc(targets, func(t Target) bool { return t.Instance == s.Instance })
		if !leaves && !s.Stale(now) && s.Left == "" {
			ids = append(ids, s.Instance)
		}
	}
	return ids
}
