package sim

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Options shape a history.
type Options struct {
	Broken Rule // a rule that every process breaks; None: all are kept
	Trace  bool // keep the trace also of a history that is good
}

// Result says what a history contained.
type Result struct {
	Seed       uint64
	Steps      int
	Rounds     int
	RestRounds int            // the most rounds from the last event to rest
	Faults     map[string]int // faults and events that happened, by name

	Handovers     int // tokens seen by their takers
	ToldAgain     int // owners that looked at the committed offset before they released
	FoundReleased int // of these, those that found the release there, or its taker's commit

	ExactlyOnce  int // 1 if the processes promise that, else at least once
	Transactions int // committed
	Aborts       int // of processes that went on
	Fences       int // transactions that were ended by who opened a task

	Trace []string
}

// Add sums up results.
func (r *Result) Add(o Result) {
	r.Steps += o.Steps
	r.Rounds += o.Rounds
	r.RestRounds = max(r.RestRounds, o.RestRounds)
	if r.Faults == nil {
		r.Faults = map[string]int{}
	}
	for f, n := range o.Faults {
		r.Faults[f] += n
	}
	r.Handovers += o.Handovers
	r.ToldAgain += o.ToldAgain
	r.FoundReleased += o.FoundReleased
	r.ExactlyOnce += o.ExactlyOnce
	r.Transactions += o.Transactions
	r.Aborts += o.Aborts
	r.Fences += o.Fences
}

// FaultNames are the names of all faults and events.
func FaultNames() []string { return faultNames[:] }

// Violation is a demand that a history did not meet.
type Violation struct {
	Seed   uint64
	Step   int
	Demand string // a rule, or what the checker calls it
	What   string
	Trace  []string // one line per event
}

// Error names the demand and the seed; the trace is apart, as it is long.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, step %d: %s: %s", v.Seed, v.Step, v.Demand, v.What)
}

// Story is the trace as text.
func (v *Violation) Story() string { return strings.Join(v.Trace, "\n") }

// Run plays the history of a seed. The error, if there is one, is a *Violation with its trace.
func Run(seed uint64, opt Options) (Result, error) {
	w := play(seed, opt)
	if w.violation == nil {
		w.result.Trace = w.trace
		return w.result, nil
	}
	if !opt.Trace {
		// The same seed gives the same history: traces are made for those that need one.
		opt.Trace = true
		w = play(seed, opt)
	}
	w.violation.Trace = w.trace
	return w.result, w.violation
}

func play(seed uint64, opt Options) (w *world) {
	w = newWorld(seed, opt)
	defer func() {
		w.result.Steps = w.step
		if r := recover(); r != nil {
			w.fail("no panic", "%v\n%s", r, debug.Stack())
		}
	}()
	for _, h := range w.hosts {
		w.start(h)
	}
	w.produce()
	w.quiet = true
	w.settle()
	for range 1 + w.rng.IntN(2) {
		w.drawFaults()
		w.quiet = false
		for n := 50 + w.rng.IntN(500); n > 0 && w.violation == nil; n-- {
			w.step++
			w.disturb()
			w.check()
		}
		if w.violation != nil {
			break
		}
		w.beginQuiet()
		w.settle()
		if w.violation != nil {
			break
		}
	}
	return w
}

// disturb lets one random thing happen, a fault now and then.
func (w *world) disturb() {
	if w.chance(w.faultRate) {
		w.strike()
		return
	}
	for range 20 {
		if w.act() {
			return
		}
	}
	w.strike()
}

// act tries one random thing that is no fault. It reports whether it could be done.
func (w *world) act() bool {
	switch n := w.rng.IntN(100); {
	case n < 3:
		w.produce()
		return true
	case n < 15:
		return len(w.commits) > 0 && w.deliver(w.commits[w.rng.IntN(len(w.commits))])
	case n < 25:
		return w.completeJoin(false)
	case n < 26:
		return w.expireDead()
	case n < 32:
		if w.markSome() {
			return true
		}
	}
	p := w.anyProcess(func(p *process) bool { return !p.paused })
	if p == nil || !w.chance(p.host.pace) {
		return false
	}
	if w.chance(w.haste) {
		return p.clientStep()
	}
	switch n := w.rng.IntN(40); {
	case n < 2:
		return p.leaveFormer()
	case n < 4:
		return p.leaveIfDone()
	case n < 5:
		p.syncDisk()
		return true
	case n < 13:
		return p.commitSome()
	default:
		return p.taskStep(w.tasks[w.rng.IntN(len(w.tasks))])
	}
}
