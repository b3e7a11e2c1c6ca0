package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Measures of the picture, in pixels.
const (
	width    = 860
	left     = 150 // of the time axis
	right    = 30
	top      = 54
	laneTall = 18
	barTall  = 10
	gapTall  = 16 // between two instances
)

var colours = map[string]string{active: "#2563eb", learning: "#fde68a", ready: "#f59e0b"}

// svg draws one lane for each task on each instance.
func (h *history) svg() string {
	lanes := slices.SortedFunc(maps.Keys(h.lanes), func(a, b lane) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.task, b.task))
	})
	var b strings.Builder
	y, instance := top, ""
	for _, l := range lanes {
		if l.instance != instance {
			if instance != "" {
				y += gapTall
			}
			instance = l.instance
			fmt.Fprintf(&b, `<text x="16" y="%d" class="i">%s</text>`+"\n", y+barTall, instance)
			h.marks(&b, instance, y)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" class="t">%s</text>`+"\n", left-10, y+barTall-1, l.task)
		for _, s := range h.lanes[l] {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", h.x(s.from), y, h.x(s.to)-h.x(s.from), barTall, colours[s.role])
		}
		for _, m := range h.moves {
			if m.lane == l {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="5" class="m"/>`+"\n", h.x(m.at), y+barTall/2)
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" class="g">gap %.0f ms</text>`+"\n", h.x(m.at)+9, y+barTall-1, m.gap)
			}
		}
		y += laneTall
	}
	tall := y + 34
	return head(tall) + h.axis(y) + b.String() + "</svg>\n"
}

// marks draws when the instance was told to leave, and when it had nothing left.
func (h *history) marks(b *strings.Builder, instance string, y int) {
	bottom := y + laneTall*h.count(instance) - 4
	for _, m := range []struct {
		at   map[string]int64
		text string
	}{{h.leaving, "leave"}, {h.drained, "drained, exits"}} {
		if at, ok := m.at[instance]; ok && at < h.end {
			fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="mark"/><text x="%.1f" y="%d" class="s">%s</text>`+"\n",
				h.x(at), h.x(at), y-4, bottom+3, h.x(at)+4, bottom+5, m.text)
		}
	}
}

func (h *history) count(instance string) int {
	n := 0
	for l := range h.lanes {
		if l.instance == instance {
			n++
		}
	}
	return n
}

// x is where a time is on the axis.
func (h *history) x(at int64) float64 {
	return left + float64(at-h.start)/float64(h.end-h.start)*(width-left-right)
}

// axis draws the seconds since the picture's start and the lines up to them.
func (h *history) axis(bottom int) string {
	var b strings.Builder
	for s := int64(0); h.start+s*1000 <= h.end; s++ {
		x := h.x(h.start + s*1000)
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="a"/><text x="%.1f" y="%d" class="n">%d s</text>`+"\n",
			x, x, top-8, bottom, x, bottom+16, s)
	}
	return b.String()
}

func head(tall int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif">
<style>text{font-size:11px;fill:#334155} .i{font-size:14px;font-weight:600} .s{fill:#b91c1c} .t{text-anchor:end} .n{text-anchor:middle;fill:#64748b}
.g{fill:#fff;font-size:9px} .a{stroke:#e2e8f0} .m{fill:#fff;stroke:#0f172a;stroke-width:2} .mark{stroke:#b91c1c;stroke-dasharray:3 2}</style>
<rect width="%d" height="%d" rx="6" fill="#fff"/>
`, width, tall, width, tall, width, tall)
	x := left
	for _, k := range []struct{ role, text string }{{active, "runs the task"}, {learning, "learner"}, {ready, "learner, ready"}} {
		fmt.Fprintf(&b, `<rect x="%d" y="18" width="22" height="%d" fill="%s"/><text x="%d" y="27">%s</text>`+"\n", x, barTall, colours[k.role], x+28, k.text)
		x += 120
	}
	fmt.Fprintf(&b, `<circle cx="%d" cy="23" r="5" class="m"/><text x="%d" y="27">handover</text>`+"\n", x+8, x+20)
	return b.String()
}
