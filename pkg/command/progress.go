package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/control"
)

// waitInterval is between two looks at instances that are waited for.
const waitInterval = 500 * time.Millisecond

// await shows the progress of the targets until the leave of each has ended, and returns as an error what
// is worst.
func (l *leaveCommand) await(ctx context.Context, from source, targets []control.Target) error {
	watch := control.NewWatch(targets)
	show := progress{w: l.env.errOut, terminal: l.env.terminal && !l.json}
	warned := false // that every instance is leaving
	silent := false // whether the source did not answer last
	for {
		_, statuses, marks, err := from.read(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the instances go on leaving; cancel by streamworker leave --cancel", context.Cause(ctx))
		}
		if err != nil && !silent && !errors.Is(err, admin.ErrNotRunning) {
			show.line("no news: " + err.Error())
		}
		silent = err != nil
		if err == nil {
			now := time.Now()
			all := watch.Observe(statuses, marks, now)
			show.update(all)
			if ended(all) {
				return l.conclude(all)
			}
			leaving := control.NewView("", statuses, now).AllLeaving()
			if leaving && !warned {
				show.line(allLeaving)
			}
			warned = leaving
		}
		select {
		case <-time.After(waitInterval):
		case <-ctx.Done():
		}
	}
}

func ended(all []control.Progress) bool {
	for _, p := range all {
		if p.Outcome == control.Waiting {
			return false
		}
	}
	return true
}

func (l *leaveCommand) conclude(all []control.Progress) error {
	results := make([]result, len(all))
	for i, p := range all {
		results[i] = result{ID: p.Instance, Outcome: p.Outcome.String()}
	}
	if err := l.report(results); err != nil {
		return err
	}
	return worst(all, l.now)
}

// worst is the error for the worst end of a leave among them; nil: none was bad. Giving up tasks is as it should be when now says so.
func worst(all []control.Progress, now bool) error {
	var lost, undrained, withdrawn []string
	for _, p := range all {
		switch p.Outcome {
		case control.TimedOut:
			if !now {
				undrained = append(undrained, p.Instance)
			}
		case control.Withdrawn:
			withdrawn = append(withdrawn, p.Instance)
		case control.Lost:
			lost = append(lost, p.Instance)
		case control.Waiting, control.Complete:
		}
	}
	switch {
	case len(lost) > 0:
		return fmt.Errorf("%s ended before the leave did; the other instances take the tasks as after a failure", strings.Join(lost, ", "))
	case len(undrained) > 0:
		return fmt.Errorf("%s %w: the other instances restore them", strings.Join(undrained, ", "), errUndrained)
	case len(withdrawn) > 0:
		return fmt.Errorf("%s: %w", strings.Join(withdrawn, ", "), errWithdrawn)
	}
	return nil
}

// progress prints how leaves go on: on a terminal one block that is drawn anew, else a line per change.
type progress struct {
	w        io.Writer
	terminal bool
	head     string            // of the block, which a terminal shows only
	drawn    int               // lines of the block on the terminal
	last     map[string]string // per instance, what was printed
}

func (p *progress) update(all []control.Progress) {
	if p.terminal {
		var b strings.Builder
		if p.drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA\x1b[J", p.drawn)
		}
		p.drawn = 0
		if p.head != "" {
			b.WriteString(p.head + "\n")
			p.drawn++
		}
		for _, one := range all {
			for _, line := range block(one, time.Now()) {
				b.WriteString(line + "\n")
				p.drawn++
			}
		}
		_, _ = io.WriteString(p.w, b.String())
		return
	}
	if p.last == nil {
		p.last = make(map[string]string)
	}
	for _, one := range all {
		if s := summary(one); p.last[one.Instance] != s {
			p.last[one.Instance] = s
			fmt.Fprintln(p.w, s)
		}
	}
}

// replace shows one line on a terminal, instead of the one before.
func (p *progress) replace(s string) {
	p.clear()
	fmt.Fprintln(p.w, s)
	p.drawn = 1
}

// clear takes the block off the terminal.
func (p *progress) clear() {
	if p.drawn > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

// line prints a remark, which stays above the block.
func (p *progress) line(s string) {
	fmt.Fprintln(p.w, s)
	p.drawn = 0
}

// block is a target's progress task by task.
func block(p control.Progress, now time.Time) []string {
	if p.Outcome != control.Waiting {
		return []string{p.Instance + ": " + p.Outcome.String()}
	}
	first := fmt.Sprintf("%s: %s left", p.Instance, count(len(p.Tasks), "task"))
	if p.Draining {
		first += timeLeft(p.Deadline, now)
	}
	lines := []string{first}
	for i, t := range p.Tasks {
		if i == listed {
			return append(lines, fmt.Sprintf("  and %d more", len(p.Tasks)-listed))
		}
		where := "no learner yet"
		if t.Learner != nil {
			where = "to " + *t.Learner + ": " + behind(p.Lag[t.ID])
		}
		lines = append(lines, fmt.Sprintf("  %-8s %s", t.ID, where))
	}
	return lines
}

// summary changes when a task does, not with every lag.
func summary(p control.Progress) string {
	if p.Outcome != control.Waiting {
		return p.Instance + ": " + p.Outcome.String()
	}
	var parts []string
	for _, t := range p.Tasks {
		switch {
		case len(parts) == listed:
			parts = append(parts, "...")
		case len(parts) > listed:
		case t.Learner == nil:
			parts = append(parts, t.ID)
		case p.Lag[t.ID].Ready:
			parts = append(parts, t.ID+" (ready on "+*t.Learner+")")
		default:
			parts = append(parts, t.ID+" (learned by "+*t.Learner+")")
		}
	}
	s := fmt.Sprintf("%s: %s left", p.Instance, count(len(p.Tasks), "task"))
	if !p.Deadline.IsZero() {
		s += ", until " + p.Deadline.Format(time.TimeOnly) + " at most"
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	return s
}

// patiently runs f, which waits for at most the limit. If that takes longer than a second, a terminal shows what it waits for,
// and for how much longer it may.
func (e *env) patiently(what string, limit time.Duration, f func() error) error {
	if !e.terminal {
		return f()
	}
	end, done := time.Now().Add(limit), make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		show := progress{w: e.errOut, terminal: true}
		defer show.clear()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show.replace(fmt.Sprintf("%s: at most %s more", what, max(0, time.Until(end)).Round(time.Second)))
			case <-done:
				return
			}
		}
	})
	defer shown.Wait()
	defer close(done)
	return f()
}
