package draw

import (
	"fmt"
	"math"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
)

// scene is a graph with places.
type scene struct {
	graph  topology.Graph
	ids    []string // of all shapes, in order
	shapes map[string]*shape
	part   map[string]int // by shape: the index of its part
	parts  []box          // the subtopologies, then the topics
	routes map[[2]int][]point
	inner  map[[2]string][]point // by edge: through the layers of a subtopology
	w, h   float64
}

// place lays out the steps of each subtopology from top to bottom, and then all parts from left to right.
func (s *scene) place() {
	s.inner, s.routes = make(map[[2]string][]point), make(map[[2]int][]point)
	for i, part := range s.graph.Subtopologies {
		s.parts = append(s.parts, s.placeSteps(i, part))
	}
	for _, t := range s.graph.Topics {
		shape := newTopic(t)
		s.add(t.ID, shape, len(s.parts))
		s.parts = append(s.parts, shape.box)
	}
	s.placeParts()
}

func (s *scene) add(id string, shape *shape, part int) {
	s.ids, s.shapes[id], s.part[id] = append(s.ids, id), shape, part
}

// placeSteps places steps within their subtopology, whose corner is not known yet. What is not connected is placed below each
// other, so that arrows from and to topics pass by it.
func (s *scene) placeSteps(index int, part topology.GraphPart) box {
	whole := box{w: width([]string{fmt.Sprintf("subtopology %d, stateless", part.ID)}), h: caption}
	first := firsts(part.Steps)
	for _, n := range part.Steps {
		s.add(n.ID, newStep(n, first[n.ID]), index)
	}
	for i, steps := range connected(part.Steps, s.graph.Edges) {
		if i > 0 {
			whole.h += stepGap.layer
		}
		w, h := s.placeConnected(steps, whole.h)
		whole.w, whole.h = math.Max(whole.w, w), whole.h+h
	}
	return box{w: whole.w + 2*padding, h: whole.h + padding}
}

// placeConnected places steps that are connected, with the least y given.
func (s *scene) placeConnected(steps []string, y float64) (w, h float64) {
	boxes, at := make([]box, len(steps)), make(map[string]int)
	for i, id := range steps {
		boxes[i], at[id] = s.shapes[id].box, i
	}
	var edges [][2]int
	var names [][2]string
	for _, e := range s.graph.Edges {
		from, inFrom := at[e.From]
		to, inTo := at[e.To]
		if inFrom && inTo {
			edges, names = append(edges, [2]int{from, to}), append(names, [2]string{e.From, e.To})
		}
	}
	routes, w, h := layered(boxes, edges, stepGap)
	for i, id := range steps {
		s.shapes[id].box = boxes[i]
		s.shapes[id].y += y
	}
	for i, name := range names {
		for j := range routes[i] {
			routes[i][j].y += y
		}
		s.inner[name] = routes[i]
	}
	return w, h
}

// connected are the steps in groups between which no arrow leads; groups and steps in their order.
func connected(steps []topology.GraphNode, edges []topology.GraphEdge) [][]string {
	group := make(map[string]int)
	for i, n := range steps {
		group[n.ID] = i
	}
	for changed := true; changed; {
		changed = false
		for _, e := range edges {
			a, inA := group[e.From]
			b, inB := group[e.To]
			if inA && inB && a != b {
				group[e.From], group[e.To], changed = min(a, b), min(a, b), true
			}
		}
	}
	var out [][]string
	index := make(map[int]int)
	for _, n := range steps {
		i, known := index[group[n.ID]]
		if !known {
			i = len(out)
			index[group[n.ID]] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], n.ID)
	}
	return out
}

// placeParts places subtopologies and topics, and moves the steps to where their subtopology is.
func (s *scene) placeParts() {
	turned := make([]box, len(s.parts))
	for i, p := range s.parts {
		turned[i] = box{w: p.h, h: p.w}
	}
	var edges [][2]int
	known := make(map[[2]int]bool)
	for _, e := range s.graph.Edges {
		pair := [2]int{s.part[e.From], s.part[e.To]}
		if pair[0] != pair[1] && !known[pair] {
			known[pair], edges = true, append(edges, pair)
		}
	}
	routes, h, w := layered(turned, edges, partGap)
	for i, pair := range edges {
		for _, p := range routes[i] {
			s.routes[pair] = append(s.routes[pair], point{p.y + margin, p.x + margin})
		}
	}
	for i := range s.parts {
		s.parts[i].x, s.parts[i].y = turned[i].y+margin, turned[i].x+margin
	}
	s.w, s.h = w+2*margin, h+2*margin
	for _, id := range s.ids {
		shape, part := s.shapes[id], s.parts[s.part[id]]
		if s.part[id] >= len(s.graph.Subtopologies) {
			shape.x, shape.y = part.x, part.y
			continue
		}
		shape.x += part.x + padding
		shape.y += part.y
	}
}

// writeEdge draws an arrow: within a subtopology from top to bottom, else from left to right.
func (s *scene) writeEdge(b *strings.Builder, e topology.GraphEdge) {
	from, to := s.shapes[e.From], s.shapes[e.To]
	pair := [2]int{s.part[e.From], s.part[e.To]}
	if pair[0] == pair[1] {
		part := s.parts[pair[0]]
		route := []point{{from.x + from.w/2, from.y + from.h}}
		for _, p := range s.inner[[2]string{e.From, e.To}] {
			route = append(route, point{p.x + part.x + padding, p.y + part.y})
		}
		writeDown(b, append(route, point{to.x + to.w/2, to.y}))
		return
	}
	route := s.leave(e.From)
	straight := len(route) - 1
	route = append(append(route, s.routes[pair]...), s.enter(e.To)...)
	writePath(b, route, straight, len(s.routes[pair]))
}

// leave is how an arrow gets out of a shape to the right: below its row, if others stand in the way.
func (s *scene) leave(id string) []point {
	from := s.shapes[id]
	bottom, blocked := from.y+from.h, false
	for _, other := range s.row(id) {
		if other.x > from.x {
			bottom, blocked = math.Max(bottom, other.y+other.h), true
		}
	}
	if !blocked {
		return []point{{from.x + from.w, from.y + from.h/2}}
	}
	part := s.parts[s.part[id]]
	x, y := from.x+from.w/2, bottom+detour
	return []point{{x, from.y + from.h}, {x, y}, {part.x + part.w, y}}
}

// enter is how an arrow gets into a shape from the left: above its row, if others stand in the way.
func (s *scene) enter(id string) []point {
	to := s.shapes[id]
	top, blocked := to.y, false
	for _, other := range s.row(id) {
		if other.x < to.x {
			top, blocked = math.Min(top, other.y), true
		}
	}
	if !blocked {
		return []point{{to.x, to.y + to.h/2}}
	}
	part := s.parts[s.part[id]]
	x, y := to.x+to.w/2, top-detour
	return []point{{part.x, y}, {x, y}, {x, to.y}}
}

// detour is how far from a row arrows pass it.
const detour = 7

// row are the other shapes of the part that stand beside one.
func (s *scene) row(id string) []*shape {
	var out []*shape
	one := s.shapes[id]
	for _, other := range s.ids {
		o := s.shapes[other]
		if other != id && s.part[other] == s.part[id] && o.y < one.y+one.h && one.y < o.y+o.h {
			out = append(out, o)
		}
	}
	return out
}

// writePath draws a line from left to right: straight between the first points, as many as told, and from the last stretch between
// layers on; between layers, of which there are passed half as many as points, it is curved.
func writePath(b *strings.Builder, route []point, straight, passed int) {
	fmt.Fprintf(b, `<path class="edge" marker-end="url(#head)" d="M%.1f %.1f`, route[0].x, route[0].y)
	for i := 1; i < len(route); i++ {
		p, q := route[i-1], route[i]
		if k := i - straight - 1; k < 0 || k > passed || k%2 == 1 {
			fmt.Fprintf(b, "L%.1f %.1f", q.x, q.y)
			continue
		}
		dx := math.Max((q.x-p.x)/2, 24)
		fmt.Fprintf(b, "C%.1f %.1f %.1f %.1f %.1f %.1f", p.x+dx, p.y, q.x-dx, q.y, q.x, q.y)
	}
	b.WriteString("\"/>\n")
}

// writeDown draws a line from top to bottom; the stretches between layers are curved, those that pass one are straight.
func writeDown(b *strings.Builder, route []point) {
	fmt.Fprintf(b, `<path class="edge" marker-end="url(#head)" d="M%.1f %.1f`, route[0].x, route[0].y)
	for i := 1; i < len(route); i++ {
		p, q := route[i-1], route[i]
		if i%2 == 0 {
			fmt.Fprintf(b, "L%.1f %.1f", q.x, q.y)
			continue
		}
		dy := math.Max((q.y-p.y)/2, 12)
		fmt.Fprintf(b, "C%.1f %.1f %.1f %.1f %.1f %.1f", p.x, p.y+dy, q.x, q.y-dy, q.x, q.y)
	}
	b.WriteString("\"/>\n")
}
