package leave

import "time"

// Phase is how far a leave has come.
type Phase uint8

// The phases, in order.
const (
	Running Phase = iota
	Draining
	Drained
	Left
)

// String is the phase as commands print it.
func (p Phase) String() string {
	return [...]string{"running", "draining", "drained", "left"}[p]
}

// Action is what the controller has to do next.
type Action uint8

// The actions.
const (
	Wait     Action = iota // nothing until something changes or Decision.Wake
	Announce               // tell the group that this instance leaves, with the order's deadline
	Withdraw               // tell the group that it stays
	Finish                 // nothing is left: leave the group and exit
	GiveUp                 // time is up: commit, leave the group and exit with what is left
)

// String names the action.
func (a Action) String() string {
	return [...]string{"wait", "announce", "withdraw", "finish", "give up"}[a]
}

// StallAfter is the time without a task handed over after which a drain counts as stalled.
const StallAfter = time.Minute

// Facts is everything that a decision follows from.
type Facts struct {
	Now       time.Time
	Order     *Order    // in force; nil: none
	Announced *Deadline // what the group was told; nil: that this instance stays
	Remaining int       // tasks that this instance still runs, or has not finished to release
	Settled   bool      // the plan in force was made knowing that this instance leaves, and leaves it nothing
	Progress  time.Time // when Remaining last went down, or the drain began
}

// Decision is what to do, and when to look again.
type Decision struct {
	Action  Action
	Phase   Phase
	Wake    time.Time // of Wait; zero: only when something changes
	Stalled bool      // nothing was handed over for StallAfter
}

// Evaluate decides. An instance with nothing to give is drained as soon as the group has planned
// without it: before that, a round under way could still give it a task.
func Evaluate(f Facts) Decision {
	switch {
	case f.Order == nil && f.Announced == nil:
		return Decision{Action: Wait, Phase: Running}
	case f.Order == nil:
		return Decision{Action: Withdraw, Phase: Running}
	case f.Announced != nil && f.Settled && f.Remaining == 0:
		return Decision{Action: Finish, Phase: Drained}
	case f.Order.Deadline.Passed(f.Now):
		return Decision{Action: GiveUp, Phase: Draining}
	case f.Announced == nil || *f.Announced != f.Order.Deadline:
		return Decision{Action: Announce, Phase: Draining}
	}
	stall := f.Progress.Add(StallAfter)
	d := Decision{Action: Wait, Phase: Draining, Stalled: !f.Now.Before(stall)}
	d.Wake, _ = f.Order.Deadline.Time()
	if !d.Stalled && (d.Wake.IsZero() || stall.Before(d.Wake)) {
		d.Wake = stall
	}
	return d
}
