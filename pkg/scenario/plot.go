package scenario

import (
	_ "embed"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
)

//go:embed plot.html
var plotHTML string

// uPlot draws the charts in the browser. It is in the page, so that the page needs nothing from elsewhere.
var (
	//go:embed uplot/uPlot.iife.min.js
	uPlotScript string
	//go:embed uplot/uPlot.min.css
	uPlotStyle string
	//go:embed uplot/LICENSE
	uPlotLicense string
)

var plotTemplate = template.Must(template.New("plot").Parse(plotHTML))

// Sizes of the drawings of tasks, in pixels.
const (
	plotWidth = 860.0
	rowHeight = 16.0
	maxRows   = 100 // tasks drawn one by one
	maxLegend = 40  // members named in the legend
)

// Plot writes a page that draws the results: charts of all policies over time, and of each who runs and who learns
// each task. The page needs nothing from elsewhere.
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
	page := plotPage{
		Title: filepath.Base(c.Scenario), Unit: "rebalances", Metrics: c.table(), Charts: c.charts(p.timed),
		Script: template.JS(uPlotScript), Style: template.CSS(uPlotStyle), License: template.JS("/*\n" + uPlotLicense + "*/"), //nolint:gosec // our own files
	}
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
		page.Timelines = append(page.Timelines, p.draw(v.Name, c.Results[v.Name]))
	}
	return plotTemplate.Execute(w, page)
}

// plotPage is what the template draws.
type plotPage struct {
	Title, Unit string
	Metrics     [][]string
	Charts      []chart
	Legend      []swatch
	Unnamed     int // members beyond the legend
	Timelines   []timeline
	Script      template.JS
	Style       template.CSS
	License     template.JS
}

// chart is a value over time, a line for each policy.
type chart struct {
	Title string `json:"title"`
	Lines []line `json:"lines"`
}

type line struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// charts are those of which something is to be seen.
func (c Comparison) charts(timed bool) (charts []chart) {
	for _, of := range []struct {
		title string
		value func(sample) float64
	}{
		{"Rebalances so far", func(s sample) float64 { return float64(s.rebalances) }},
		{"Tasks moved so far", func(s sample) float64 { return float64(s.moved) }},
		{"Learners at work", func(s sample) float64 { return float64(s.learners) }},
		{"Tasks without a runner", func(s sample) float64 { return float64(s.idle) }},
		{"Restored so far, GiB", func(s sample) float64 { return s.restored / (1 << 30) }},
		{"Load of the most loaded instance", func(s sample) float64 { return s.highest }},
	} {
		drawn := chart{Title: of.title}
		most := 0.0
		for _, v := range c.Variants {
			l := line{Name: v.Name}
			for _, s := range c.Results[v.Name].trace {
				x := float64(s.rebalances)
				if timed {
					x = s.at
				}
				if n := len(l.X); n > 0 && l.X[n-1] == x {
					l.Y[n-1] = of.value(s) // of one instant only the end is to be seen
				} else {
					l.X, l.Y = append(l.X, x), append(l.Y, of.value(s))
				}
				most = max(most, of.value(s))
			}
			drawn.Lines = append(drawn.Lines, l)
		}
		if most > 0 {
			charts = append(charts, drawn)
		}
	}
	return charts
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
