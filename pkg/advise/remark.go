package advise

import (
	"fmt"
	"math"

	"github.com/streamworker/streamworker/pkg/control"
)

// Where a remark is due.
const (
	idle     = 0.5 // of the target: threads that have little to do
	falling  = 1.05
	overload = 0.9 // of its threads, of a single instance
)

// remark adds what another number of instances does not change.
func (a *Advice) remark(g *group, p Policy) {
	say := func(format string, args ...any) { a.Reasons = append(a.Reasons, fmt.Sprintf(format, args...)) }
	share := a.share()
	if g.failing > 0 {
		say("%s cannot go on, and would not elsewhere: status says why", count(g.failing, "task"))
	}
	if hot := hottest(g.staying); hot != nil && share < p.Target && 1-hot.Headroom() >= overload {
		say("%s is at its limit (%.0f %%) while all together are not (%.0f %%): its tasks have more to do than others, which more instances help against only if it has several",
			hot.Instance, (1-hot.Headroom())*100, share*100)
	}
	if a.Leaving > 0 {
		say("not counted: %s leaving; what is processed there is", count(a.Leaving, "instance"))
	}
}

// share is how much of the threads that have tasks is at work.
func (a *Advice) share() float64 { return a.Busy / float64(max(1, min(a.Threads, a.Tasks))) }

// heldUp keeps the present number of instances where what arrives is not processed although threads are free: then what a record takes
// says nothing about what fewer instances would do.
func (a *Advice) heldUp(p Policy) {
	if a.Needed < a.Instances && a.Arriving > a.Processed*falling && a.share() < p.Target*idle {
		a.Needed = a.Instances
		a.why("more arrives than is processed though the threads have little to do (%.0f %%): Kafka, the network or tasks that fail hold it up, so fewer instances are not advised", a.share()*100)
	}
}

// hottest is the instance with the least headroom; nil: none has a task.
func hottest(all []control.Status) (hot *control.Status) {
	for i := range all {
		if s := &all[i]; len(s.Active) > 0 && (hot == nil || s.Headroom() < hot.Headroom()) {
			hot = s
		}
	}
	return hot
}

// Mean is the last of several looks at a group, with rates and loads that are the mean of those looks that saw the instance in the same run.
func Mean(looks [][]control.Status) []control.Status {
	if len(looks) == 0 {
		return nil
	}
	last := append([]control.Status(nil), looks[len(looks)-1]...)
	for i := range last {
		s := &last[i]
		var in, out, arriving, busy, n float64
		for _, look := range looks {
			for _, o := range look {
				if o.Instance == s.Instance && o.Incarnation.SameRun(s.Incarnation) {
					in, out, arriving, busy, n = in+o.Rates.In, out+o.Rates.Out, arriving+o.Load.Arriving, busy+o.Load.Busy, n+1
				}
			}
		}
		s.Rates = control.Rates{In: in / n, Out: out / n}
		s.Load.Arriving, s.Load.Busy = arriving/n, busy/n
	}
	return last
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func threads(n float64) string {
	n = math.Round(n*10) / 10
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%g threads", n)
}

func bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for n >= 1024 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	return fmt.Sprintf("%.3g %s", n, units[0])
}
