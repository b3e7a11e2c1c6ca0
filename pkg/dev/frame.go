package dev

import (
	"fmt"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// frame is what the screen shows at one moment.
type frame struct {
	title       string
	elapsed     time.Duration // since the stream began
	length      time.Duration // that it is to last; 0: until it is stopped
	streaming   bool
	in, out     int64
	inPerSecond float64
	outPerSec   float64
	moved       int
	longest     time.Duration // gap
	rebalances  int32
	frequent    []string // words
	counts      []int64  // of them
	tasks       []string
	rows        []row
}

// row is one instance.
type row struct {
	id        string
	state     control.State
	gone      bool
	perSecond float64
	active    map[string]bool
	learning  map[string]int // percent of the state that is here, by task
	fresh     map[string]bool
}

// freshFor is how long a task stands out after a move.
const freshFor = 1500 * time.Millisecond

// frame reads the instances.
func (r *run) frame(now time.Time) frame {
	f := frame{title: r.app.title(), length: r.cfg.For, streaming: !r.began.IsZero(), tasks: r.app.taskNames()}
	if f.streaming {
		f.elapsed = now.Sub(r.began)
		f.rebalances = r.newest() - r.generation
	}
	if r.output != nil {
		f.in, f.out = r.generator.written(), r.output.read()
		f.inPerSecond, f.outPerSec = r.lines.perSecond(f.in, now), r.outs.perSecond(f.out, now)
		if !r.app.own() {
			f.frequent = common[:2]
			f.counts = r.output.countOf(f.frequent)
		}
	}
	taken, _ := r.moves.since(0, 0)
	f.moved = len(taken)
	fresh := make(map[string]string) // by task, where it has just come to
	for _, m := range taken {
		f.longest = max(f.longest, m.gap)
		if now.Sub(m.at) < freshFor {
			fresh[m.task.String()] = m.to
		}
	}
	for _, w := range r.workers {
		s := w.Status()
		one := row{
			id: w.ID(), state: s.State, gone: r.gone[w.ID()], perSecond: w.speed.perSecond(w.Totals().RecordsIn, now),
			active: make(map[string]bool), learning: make(map[string]int), fresh: make(map[string]bool),
		}
		for _, t := range s.Active {
			one.active[t], one.fresh[t] = true, fresh[t] == w.ID()
		}
		for _, l := range s.Learning {
			one.learning[l.Task] = w.progress(l)
		}
		f.rows = append(f.rows, one)
	}
	return f
}

// Columns of the table.
const (
	nameWidth  = 10
	stateWidth = 9
	speedWidth = 8
	taskWidth  = 4
)

// render gives the lines of the frame, the last of them the latest events.
func (f frame) render(events []string, p palette) []string {
	lines := []string{p.bold(f.title) + "  " + f.clock(), ""}
	lines = append(lines, f.figures(p)...)
	lines = append(lines, "", p.faint(f.head()))
	for _, r := range f.rows {
		lines = append(lines, r.render(f.tasks, p))
	}
	lines = append(lines, "", "  "+p.green("●")+p.faint(" runs here   ")+p.yellow("62%")+p.faint(" is learned here: how much of the task's state has come"), "")
	return append(lines, events...)
}

func (f frame) clock() string {
	switch {
	case !f.streaming:
		return "starting"
	case f.length == 0:
		return clock(f.elapsed) + ", Ctrl-C ends it"
	case f.elapsed > f.length:
		return clock(f.elapsed) + ", ending"
	}
	return clock(f.elapsed) + " of " + clock(f.length)
}

func (f frame) figures(p palette) []string {
	gap := "-"
	if f.moved > 0 {
		gap = short(f.longest)
	}
	var counts []string
	for i, w := range f.frequent {
		counts = append(counts, w+" "+thousands(f.counts[i]))
	}
	in := fmt.Sprintf("  lines in    %9s %8s/s", thousands(f.in), thousands(int64(f.inPerSecond)))
	out := fmt.Sprintf("  records out %9s %8s/s", thousands(f.out), thousands(int64(f.outPerSec)))
	return []string{
		in + "    moves      " + p.bold(fmt.Sprintf("%3d", f.moved)) + "    longest gap " + p.bold(gap),
		strings.TrimRight(fmt.Sprintf("%s    rebalances %3d    %s", out, f.rebalances, strings.Join(counts, "  ")), " "),
	}
}

func (f frame) head() string {
	head := fmt.Sprintf("  %-*s%-*s%*s", nameWidth, "instance", stateWidth, "", speedWidth, "")
	for _, t := range f.tasks {
		head += fmt.Sprintf("%*s", taskWidth, t)
	}
	return head
}

func (r row) render(tasks []string, p palette) string {
	if r.gone {
		return "  " + p.faint(fmt.Sprintf("%-*s%s", nameWidth, r.id, "gone"))
	}
	state := fmt.Sprintf("%-*s", stateWidth, r.state)
	if r.state == control.Draining || r.state == control.Drained {
		state = p.red(state)
	}
	line := fmt.Sprintf("  %-*s", nameWidth, r.id) + state + fmt.Sprintf("%*s", speedWidth, thousands(int64(r.perSecond))+"/s")
	for _, t := range tasks {
		percent, learns := r.learning[t]
		switch {
		case r.active[t] && r.fresh[t]:
			line += strings.Repeat(" ", taskWidth-2) + p.fresh("●") + " "
		case r.active[t]:
			line += strings.Repeat(" ", taskWidth-2) + p.green("●") + " "
		case learns:
			line += p.yellow(fmt.Sprintf("%*s", taskWidth, fmt.Sprintf("%d%%", percent)))
		default:
			line += strings.Repeat(" ", taskWidth-2) + p.faint("·") + " "
		}
	}
	return line
}

// plain is the frame on one line.
func (f frame) plain() string {
	if !f.streaming {
		return ""
	}
	parts := []string{fmt.Sprintf("%s lines in, %s records out (%s/s)", thousands(f.in), thousands(f.out), thousands(int64(f.outPerSec)))}
	for _, r := range f.rows {
		if r.gone {
			continue
		}
		s := fmt.Sprintf("%s %d", r.id, len(r.active))
		if n := len(r.learning); n > 0 {
			s += fmt.Sprintf(" +%d learning", n)
		}
		if r.state != control.Running {
			s += " " + string(r.state)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// short writes a time as people say it.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
