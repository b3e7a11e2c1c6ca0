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
	Faults     int
	Rounds     int
	RestRounds int // the most rounds from the last event to rest
	Trace      []string
}

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
		for n := 50 + w.rng.IntN(400); n > 0 && w.violation == nil; n-- {
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

// disturb does one random thing.
func (w *world) disturb() {
	p := w.anyProcess(func(p *process) bool { return !p.paused })
	n := w.rng.IntN(100)
	if p == nil {
		n = 99 - w.rng.IntN(10)
	}
	switch {
	case n < 40 && w.chance(w.haste):
		p.clientStep()
	case n < 40:
		p.taskStep(w.tasks[w.rng.IntN(len(w.tasks))])
	case n < 43:
		p.leaveFormer()
	case n < 45:
		p.leaveIfDone()
	case n < 67:
		p.taskStep(w.tasks[w.rng.IntN(len(w.tasks))])
	case n < 73:
		p.commitSome()
	case n < 74:
		p.syncDisk()
	case n < 77:
		w.produce()
	case n < 85:
		if len(w.commits) > 0 {
			w.deliver(w.commits[w.rng.IntN(len(w.commits))])
		}
	case n < 91:
		w.completeJoin(false)
	case n < 92:
		w.expireDead()
	default:
		w.strike()
	}
}
