package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// What is the kind of a Record.
type What uint8

// The kinds.
const (
	Received  What = iota // a plan has arrived
	Adopted               // and is acted on from now on: it is the lease
	Lost                  // the lease is over
	Phase                 // a task changed to phase To
	Committed             // tasks were committed under a lease
	Ended                 // the process is gone
)

// Lease is a member id and a generation.
type Lease struct {
	Member     string
	Generation int32
}

func (l Lease) String() string { return fmt.Sprintf("%s in generation %d", l.Member, l.Generation) }

// Record is one thing that a process did. Times of all processes are by one clock.
type Record struct {
	At      time.Time
	Process string
	What    What
	Lease   Lease     // Received, Adopted, Committed
	Tasks   []string  // Phase: one; Committed
	To      string    // Phase
	Sent    time.Time // Committed: when the lease was looked at
}

// Records picks what counts from the log of a process, at level debug.
func Records(process string, log []harness.Event) []Record {
	var records []Record
	for _, e := range log {
		r := Record{At: e.Time, Process: process, Lease: Lease{e.Text("member"), int32(e.Number("generation"))}}
		switch e.Msg {
		case "plan received":
			r.What = Received
		case "adopted a plan":
			r.What = Adopted
		case "lost the group: dropping owned tasks until the next plan":
			r.What = Lost
		case "task changed phase":
			r.What, r.Tasks, r.To = Phase, []string{e.Text("task")}, e.Text("to")
		case "committed":
			r.What, r.Tasks = Committed, strings.Split(e.Text("tasks"), ",")
			r.Sent, _ = time.Parse(time.RFC3339Nano, e.Text("sent"))
		default:
			continue
		}
		records = append(records, r)
	}
	return records
}

// span is the time in which a process ran a task.
type span struct {
	process, task string
	from, to      time.Time
}

// checker follows all processes through a history.
type checker struct {
	processes map[string]*process
	runs      []span
	commits   map[string][]commit // by task
	found     []string
}

// process is what is known of one process.
type process struct {
	received Lease // of the latest plan
	plans    []*plan
	phases   map[string][]phase // by task, in order of time
	ended    bool
}

// plan is a plan that a process acted on, until it got the next one or lost it.
type plan struct {
	lease Lease
	at    time.Time
	until time.Time // zero: to the end
	lost  bool      // ended by a loss, or with the process
}

type phase struct {
	name string
	at   time.Time
}

type commit struct {
	process string
	lease   Lease
	sent    time.Time
}

// Check returns what is wrong in a history:
//
//   - Two processes run one task at one time, and no later plan has ended the lease of one of them. A process whose lease
//     has ended may not know it yet, but not for longer than unaware.
//   - A commit does not carry the lease that its process held when it sent it, or is of a task that it then did not have.
//   - Under one generation, a process commits a task after another one has.
//   - The generation of a process's plans goes back.
//
// Every process must have ended.
func Check(history []Record, unaware time.Duration) []string {
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b Record) int { return a.At.Compare(b.At) })
	c := &checker{processes: map[string]*process{}, commits: map[string][]commit{}}
	for i := range history {
		c.follow(&history[i])
	}
	for name, p := range c.processes {
		if !p.ended {
			c.report("the history does not tell the end of %s", name)
		}
	}
	c.checkRuns(unaware)
	c.checkOrder()
	slices.Sort(c.found)
	return c.found
}

func (c *checker) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func stamp(t time.Time) string { return t.Format("15:04:05.000000") }

func (c *checker) follow(r *Record) {
	p := c.processes[r.Process]
	if p == nil {
		p = &process{phases: map[string][]phase{}}
		c.processes[r.Process] = p
	}
	switch r.What {
	case Received:
		// A join that makes no round ends with the member's plan once more.
		if last := p.received; r.Lease.Generation < last.Generation || r.Lease.Generation == last.Generation && r.Lease.Member != last.Member {
			c.report("%s %s received a plan of generation %d after one of %d", stamp(r.At), r.Process, r.Lease.Generation, last.Generation)
		}
		p.received = r.Lease
	case Adopted:
		p.end(r.At, false)
		p.plans = append(p.plans, &plan{lease: r.Lease, at: r.At})
	case Lost:
		p.end(r.At, true)
	case Phase:
		c.enter(p, r.Process, r.Tasks[0], r.To, r.At)
	case Committed:
		c.committed(p, r)
	case Ended:
		p.end(r.At, true)
		p.ended = true
		for task := range p.phases {
			c.enter(p, r.Process, task, "ended", r.At)
		}
	}
}

// end ends the present lease of a process, if it has one.
func (p *process) end(at time.Time, lost bool) {
	if n := len(p.plans); n > 0 && p.plans[n-1].until.IsZero() {
		p.plans[n-1].until, p.plans[n-1].lost = at, lost
	}
}

// lease is what the process held at a time; false: nothing.
func (p *process) lease(at time.Time) (Lease, bool) {
	for _, l := range slices.Backward(p.plans) {
		if !l.at.After(at) {
			return l.lease, l.until.IsZero() || l.until.After(at)
		}
	}
	return Lease{}, false
}

func (c *checker) enter(p *process, name, task, to string, at time.Time) {
	phases := p.phases[task]
	if n := len(phases); n > 0 && phases[n-1].name == "running" {
		c.runs = append(c.runs, span{process: name, task: task, from: phases[n-1].at, to: at})
	}
	p.phases[task] = append(phases, phase{to, at})
}

// phase is that of a task at a time; "": none.
func (p *process) phase(task string, at time.Time) string {
	for _, ph := range slices.Backward(p.phases[task]) {
		if !ph.at.After(at) {
			return ph.name
		}
	}
	return ""
}

func (c *checker) committed(p *process, r *Record) {
	held, ok := p.lease(r.Sent)
	switch {
	case !ok:
		c.report("%s %s committed %v as %s, sent at %s, when it held no lease", stamp(r.At), r.Process, r.Tasks, r.Lease, stamp(r.Sent))
	case held != r.Lease:
		c.report("%s %s committed %v as %s, sent at %s, when it was %s", stamp(r.At), r.Process, r.Tasks, r.Lease, stamp(r.Sent), held)
	}
	for _, task := range r.Tasks {
		c.commits[task] = append(c.commits[task], commit{process: r.Process, lease: r.Lease, sent: r.Sent})
		switch ph := p.phase(task, r.Sent); ph {
		case "running", "looking", "releasing":
		default:
			c.report("%s %s committed task %s, sent at %s, when its phase was %q", stamp(r.At), r.Process, task, stamp(r.Sent), ph)
		}
	}
}

// checkRuns looks at every two runs of a task that overlap.
func (c *checker) checkRuns(unaware time.Duration) {
	slices.SortStableFunc(c.runs, func(a, b span) int { return a.from.Compare(b.from) })
	for i, a := range c.runs {
		for _, b := range c.runs[i+1:] {
			if b.from.After(a.to) || a.task != b.task || a.process == b.process {
				continue
			}
			at, end := b.from, a.to
			if b.to.Before(end) {
				end = b.to
			}
			if !at.Before(end) {
				continue
			}
			la, aok := c.processes[a.process].lease(at)
			lb, bok := c.processes[b.process].lease(at)
			overlap := fmt.Sprintf("task %s ran on %s as %s and on %s as %s from %s to %s", a.task, a.process, la, b.process, lb, stamp(at), stamp(end))
			switch {
			case !aok || !bok:
				c.report("%s, though one of them held no lease", overlap)
			case la.Generation == lb.Generation:
				c.report("%s, under one generation", overlap)
			case la.Generation < lb.Generation && !c.over(a.process, la, at, lb.Generation),
				lb.Generation < la.Generation && !c.over(b.process, lb, at, la.Generation):
				c.report("%s, and no plan had ended the older lease", overlap)
			case end.Sub(at) > unaware:
				c.report("%s, too long not to notice that the lease was over", overlap)
			}
		}
	}
}

// over says whether the lease that a process held at a time had been ended by the plan of a generation: it was not
// part of that, nor of a later one, before it found out or ended.
func (c *checker) over(name string, held Lease, at time.Time, by int32) bool {
	for _, l := range c.processes[name].plans {
		if l.at.After(at) && l.lease.Member == held.Member && l.lease.Generation >= by {
			return false
		}
		if !l.until.IsZero() && l.until.After(at) && l.lost {
			return true
		}
	}
	return true
}

// checkOrder looks at the order in which processes committed a task under one generation.
func (c *checker) checkOrder() {
	for task, commits := range c.commits {
		slices.SortStableFunc(commits, func(a, b commit) int { return a.sent.Compare(b.sent) })
		last := map[int32]string{}
		gone := map[int32]map[string]bool{}
		for _, k := range commits {
			g := k.lease.Generation
			if before := last[g]; before != "" && before != k.process {
				if gone[g] == nil {
					gone[g] = map[string]bool{}
				}
				gone[g][before] = true
			}
			if gone[g][k.process] {
				c.report("%s %s committed task %s as %s, after %s had", stamp(k.sent), k.process, task, k.lease, last[g])
			}
			last[g] = k.process
		}
	}
}
