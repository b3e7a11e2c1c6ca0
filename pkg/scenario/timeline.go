package scenario

import (
	"fmt"
	"maps"
	"slices"
)

type swatch struct{ Name, Colour string }

// timeline is who runs and who learns each task under one policy.
type timeline struct {
	Name    string
	Rows    []row // of tasks
	Height  float64
	Omitted int    // tasks that are not drawn
	End     string // of the time axis
}

type row struct {
	Name          string
	Y, TextY      float64
	Runs, Learned []rect
}

type rect struct {
	X, Y, Width, Height float64
	Colour, Title       string
}

// plotter scales time, or rebalances if no time passes, to the width of the page, the same for all policies.
type plotter struct {
	seconds float64
	rounds  int
	timed   bool
	end     float64
	colours map[string]string
}

// survey notes a result's members and duration.
func (p *plotter) survey(r Result) {
	p.rounds = max(p.rounds, len(r.Rebalances)+1)
	if r.Metrics.GapTaskSeconds != nil {
		p.seconds = max(p.seconds, r.trace[len(r.trace)-1].at)
	}
	for _, x := range r.Rebalances {
		for name := range x.Joined {
			p.colours[name] = ""
		}
	}
	for i, name := range slices.Sorted(maps.Keys(p.colours)) {
		// Steps of the golden angle keep neighbours apart, however many there are.
		p.colours[name] = fmt.Sprintf("hsl(%d, 55%%, %d%%)", i*1375/10%360, 50+i%3*8)
	}
}

// span is a time during which nothing changes.
type span struct {
	from, to float64
	members  map[string]Assigned
}

func (p *plotter) spans(r Result) (spans []span) {
	if len(r.Rebalances) == 0 {
		return nil
	}
	before := make(map[string]Assigned)
	for name, m := range r.Rebalances[0].Joined {
		before[name] = Assigned{Assigned: append(slices.Clone(m.Assigned), m.Revoked...), Learning: m.Learning}
	}
	spans = append(spans, span{members: before})
	for i, x := range r.Rebalances {
		at := float64(i + 1)
		if p.timed {
			at = x.at
		}
		spans[len(spans)-1].to = at
		spans = append(spans, span{from: at, members: x.Assigned})
	}
	spans[len(spans)-1].to = max(p.end, spans[len(spans)-1].from)
	return spans
}

func (p *plotter) draw(name string, r Result) timeline {
	c := timeline{Name: name}
	spans := p.spans(r)
	index := make(map[string]int)
	for _, s := range spans {
		for _, m := range s.members {
			for _, t := range m.Assigned {
				index[t] = 0
			}
		}
	}
	for i, t := range slices.SortedFunc(maps.Keys(index), compareNatural) {
		index[t] = i
		if i < maxRows {
			y := float64(i) * rowHeight
			c.Rows = append(c.Rows, row{Name: t, Y: y, TextY: y + rowHeight*0.75})
		} else {
			c.Omitted++
		}
	}
	c.Height = float64(len(c.Rows)) * rowHeight
	c.End = fmt.Sprintf("%.4g", p.end)
	for _, s := range spans {
		p.drawSpan(&c, s, index)
	}
	return c
}

func (p *plotter) drawSpan(c *timeline, s span, index map[string]int) {
	x, width := s.from/p.end*plotWidth, (s.to-s.from)/p.end*plotWidth
	if width <= 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		m := s.members[name]
		for _, t := range m.Assigned {
			if i := index[t]; i < len(c.Rows) {
				c.Rows[i].Runs = draw(c.Rows[i].Runs, rect{x, c.Rows[i].Y + 1, width, rowHeight - 2, p.colours[name], name + " runs " + t})
			}
		}
		for _, t := range m.Learning {
			if i, drawn := index[t]; drawn && i < len(c.Rows) {
				c.Rows[i].Learned = draw(c.Rows[i].Learned, rect{x, c.Rows[i].Y + rowHeight*0.6, width, rowHeight * 0.4, p.colours[name], name + " learns " + t})
			}
		}
	}
}

// draw adds a rectangle; one that only goes on with the last makes that longer.
func draw(to []rect, r rect) []rect {
	if n := len(to) - 1; n >= 0 && to[n].Title == r.Title && to[n].X+to[n].Width >= r.X-1e-6 {
		to[n].Width = r.X + r.Width - to[n].X
		return to
	}
	return append(to, r)
}
