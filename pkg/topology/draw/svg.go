package draw

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Sizes, in pixels. Text is in a monospaced font, so that its width is known without it.
const (
	charWidth  = 7.25
	lineHeight = 16.0
	padding    = 10.0
	caption    = 26.0 // above the steps of a subtopology
	margin     = 16.0
	storeGap   = 6.0
)

var (
	stepGap  = spacing{layer: 22, neighbour: 18}
	partGap  = spacing{layer: 56, neighbour: 24}
	wrapStep = 48 // characters of a line
)

// SVG draws a topology as an image that needs nothing else. It is light or dark as its viewer prefers.
func SVG(app string, g topology.Graph) string {
	s := &scene{graph: g, shapes: make(map[string]*shape), part: make(map[string]int)}
	s.place()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n", s.w, s.h, s.w, s.h)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", escape("The topology of "+app), style)
	for i, c := range s.parts {
		if i < len(g.Subtopologies) {
			writePart(&b, c, g.Subtopologies[i])
		}
	}
	for _, e := range g.Edges {
		s.writeEdge(&b, e)
	}
	for _, id := range s.ids {
		s.shapes[id].write(&b)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

const style = `<style>
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
.part { fill: #f6f8fa; stroke: #d1d9e0 } .caption { fill: #59636e }
.step { fill: #ffffff; stroke: #818b98 } .topic { fill: #ddf4ff; stroke: #0969da } .internal { stroke-dasharray: 5 3 }
.store { fill: #fff8c5; stroke: #9a6700 } .edge { fill: none; stroke: #59636e; stroke-width: 1.3 } .head { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .part { fill: #151b23; stroke: #3d444d } .caption { fill: #9198a1 }
.step { fill: #212830; stroke: #9198a1 } .topic { fill: #121d2f; stroke: #4493f8 }
.store { fill: #272215; stroke: #d29922 } .edge { stroke: #9198a1 } .head { fill: #9198a1 }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>
`

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// shape is a step or a topic.
type shape struct {
	box
	lines  []string
	full   string // all of the text, where the lines leave some out
	class  string
	stream string // whose first step it is; "": none
	stores []topology.GraphStore
}

func newStep(n topology.GraphNode, first bool) *shape {
	s := &shape{class: "step", full: n.Stream + ": " + n.Label, stores: n.Stores, lines: wrap(n.Label, wrapStep)}
	s.w, s.h = width(s.lines)+2*padding, float64(len(s.lines))*lineHeight+padding
	if first {
		s.stream = n.Stream
		s.w, s.h = max(s.w, width([]string{n.Stream})+2*padding), s.h+lineHeight
	}
	for _, store := range n.Stores {
		s.w = max(s.w, width([]string{store.Name})+4*padding)
		s.h += lineHeight + 2*storeGap
		s.full += "\nchangelog: " + store.Changelog
	}
	return s
}

func newTopic(n topology.GraphNode) *shape {
	s := &shape{class: "topic", full: n.Label, lines: []string{n.Label}}
	if n.Internal {
		s.class += " internal"
	}
	s.w, s.h = width(s.lines)+3*padding, lineHeight+padding
	return s
}

func width(lines []string) float64 {
	most := 0
	for _, l := range lines {
		most = max(most, len([]rune(l)))
	}
	return float64(most) * charWidth
}

// wrap breaks a text into at most four lines, at spaces where it can.
func wrap(text string, most int) []string {
	var lines []string
	rest := []rune(text)
	for len(rest) > most && len(lines) < 3 {
		cut := most
		for i := most; i > most/2; i-- {
			if rest[i] == ' ' {
				cut = i
				break
			}
		}
		lines = append(lines, string(rest[:cut]))
		rest = []rune(strings.TrimLeft(string(rest[cut:]), " "))
	}
	if len(rest) > most {
		rest = append(rest[:most-1:most-1], '…')
	}
	return append(lines, string(rest))
}

func (s *shape) write(b *strings.Builder) {
	corner := 4.0
	if strings.HasPrefix(s.class, "topic") {
		corner = s.h / 2
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"/>`, escape(s.full), s.class, s.x, s.y, s.w, s.h, corner)
	y := s.y + padding/2 + lineHeight*0.75
	if s.stream != "" {
		fmt.Fprintf(b, `<text class="caption" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, s.x+s.w/2, y, escape(s.stream))
		y += lineHeight
	}
	for _, line := range s.lines {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" xml:space="preserve">%s</text>`, s.x+s.w/2, y, escape(line))
		y += lineHeight
	}
	for _, store := range s.stores {
		writeStore(b, store.Name, s.x+s.w/2, y-lineHeight*0.75+storeGap/2)
		y += lineHeight + 2*storeGap
	}
	b.WriteString("</g>\n")
}

// writeStore draws a cylinder with its middle at x, and its top at y.
func writeStore(b *strings.Builder, name string, x, y float64) {
	const bow = 3.0
	w, h := width([]string{name})+2*padding, lineHeight+bow
	left, right := x-w/2, x+w/2
	fmt.Fprintf(b, `<path class="store" d="M%.1f %.1fv%.1fa%.1f %.1f 0 0 0 %.1f 0v%.1fa%.1f %.1f 0 0 0 %.1f 0a%.1f %.1f 0 0 0 %.1f 0"/>`,
		left, y+bow, h-bow, w/2, bow, w, -(h - bow), w/2, bow, -w, w/2, bow, w)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, (left+right)/2, y+bow+lineHeight*0.8, escape(name))
}

func writePart(b *strings.Builder, c box, part topology.GraphPart) {
	kind := "stateless"
	if part.Stateful {
		kind = "stateful"
	}
	fmt.Fprintf(b, `<rect class="part" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="8"/><text class="caption" x="%.1f" y="%.1f">subtopology %d, %s</text>`+"\n",
		c.x, c.y, c.w, c.h, c.x+padding, c.y+18, part.ID, kind)
}
