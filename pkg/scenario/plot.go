package scenario

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
)

//go:embed plot.html
var plotHTML string

var plotTemplate = template.Must(template.New("plot").Parse(plotHTML))

// Sizes of the drawings, in pixels.
const (
	plotWidth   = 860.0
	chartHeight = 160.0
	rowHeight   = 16.0
	maxRows     = 100 // tasks drawn one by one
	maxLegend   = 40  // members named in the legend
)

// Plot writes a page that draws the results: who runs and who learns each task over time, how many tasks and
// learners there are, and what each policy cost. The page needs nothing from elsewhere.
func (c Comparison) Plot(w io.Writer) error {
	p := plotter{colours: make(map[string]string)}
	for _, v := range c.Variants {
		p.survey(c.Results[v.Name])
	}
	if p.timed = p.seconds > 0; p.timed {
		p.end = p.seconds
	} else {
		p.end = float64(p.rounds)
	}
	page := plotPage{Title: filepath.Base(c.Scenario), Unit: "rebalances"}
	if p.timed {
		page.Unit = "seconds"
	}
	for _, name := range slices.Sorted(maps.Keys(p.colours)) {
		if len(page.Legend) < maxLegend {
			page.Legend = append(page.Legend, swatch{name, p.colours[name]})
		} else {
			page.Unnamed++
		}
	}
	for _, v := range c.Variants {
		page.Charts = append(page.Charts, p.draw(v.Name, c.Results[v.Name]))
	}
	page.Metrics = c.table()
	return plotTemplate.Execute(w, page)
}

// plotPage is what the template draws.
type plotPage struct {
	Title, Unit string
	Legend      []swatch
	Unnamed     int // members beyond the legend
	Charts      []chart
	Metrics     [][]string
}

// table has a row for each metric and a column for each policy, with names in front.
func (c Comparison) table() [][]string {
	head := []string{""}
	var rows [][]string
	for _, v := range c.Variants {
		head = append(head, v.Name)
		for i, row := range c.Results[v.Name].Metrics.rows() {
			if i == len(rows) {
				rows = append(rows, []string{row[0]})
			}
			rows[i] = append(rows[i], row[1])
		}
	}
	return append([][]string{head}, rows...)
}

type swatch struct{ Name, Colour string }

// chart is what is drawn of one policy.
type chart struct {
	Name    string
	Rows    []row // of tasks
	Height  float64
	Omitted int    // tasks that are not drawn
	End     string // of the time axis
	Tasks   stack
	Learner stack
}

// stack shows how many tasks each member has, one above the other.
type stack struct {
	Title string
	Most  int
	Rects []rect
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
	if m := r.Metrics.SecondsToBalance; m != nil {
		p.seconds = max(p.seconds, *m)
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

func (p *plotter) draw(name string, r Result) chart {
	c := chart{Name: name, Tasks: stack{Title: "Tasks, by the member that runs them"}, Learner: stack{Title: "Learners at work, by member"}}
	spans := p.spans(r)
	index := make(map[string]int)
	for _, s := range spans {
		owned, learning := 0, 0
		for _, m := range s.members {
			owned, learning = owned+len(m.Assigned), learning+len(m.Learning)
			for _, t := range m.Assigned {
				index[t] = 0
			}
		}
		c.Tasks.Most, c.Learner.Most = max(c.Tasks.Most, owned), max(c.Learner.Most, learning)
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

func (p *plotter) drawSpan(c *chart, s span, index map[string]int) {
	x, width := s.from/p.end*plotWidth, (s.to-s.from)/p.end*plotWidth
	if width <= 0 {
		return
	}
	owned, learning := 0.0, 0.0
	put := func(s *stack, n int, below *float64, name, what string) {
		if n > 0 {
			h := float64(n) / float64(s.Most) * chartHeight
			*below += h
			s.Rects = append(s.Rects, rect{x, chartHeight - *below, width, h, p.colours[name], fmt.Sprintf("%s %s %d", name, what, n)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		m := s.members[name]
		put(&c.Tasks, len(m.Assigned), &owned, name, "runs")
		put(&c.Learner, len(m.Learning), &learning, name, "learns")
		for _, t := range m.Assigned {
			if i := index[t]; i < len(c.Rows) {
				c.Rows[i].Runs = append(c.Rows[i].Runs, rect{x, c.Rows[i].Y + 1, width, rowHeight - 2, p.colours[name], name + " runs " + t})
			}
		}
		for _, t := range m.Learning {
			if i, drawn := index[t]; drawn && i < len(c.Rows) {
				c.Rows[i].Learned = append(c.Rows[i].Learned, rect{x, c.Rows[i].Y + rowHeight*0.6, width, rowHeight * 0.4, p.colours[name], name + " learns " + t})
			}
		}
	}
}
