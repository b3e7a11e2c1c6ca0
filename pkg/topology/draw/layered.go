package draw

import (
	"cmp"
	"math"
	"slices"
)

// box is something to be placed. Layers follow each other along y; callers that want them along x swap the axes.
type box struct {
	w, h float64
	x, y float64 // of the corner with the least coordinates: the result
}

type point struct{ x, y float64 }

// spacing are the least distances between layers, and between neighbours of a layer.
type spacing struct{ layer, neighbour float64 }

// layered places boxes so that edges lead to later layers, as far as there are no cycles, with few crossings. It returns for each edge the
// points through which it passes layers in between, and the size of the whole.
//
// The parts are those of Sugiyama's method: layers by longest path, stand-ins where an edge passes a layer, order by the mean of the
// neighbours, and coordinates by isotonic regression towards them.
func layered(boxes []box, edges [][2]int, gap spacing) (routes [][]point, w, h float64) {
	l := &layering{gap: gap, edges: edges}
	for i := range boxes {
		l.cells = append(l.cells, cell{size: boxes[i].w, thick: boxes[i].h})
	}
	l.assign()
	l.standIns()
	l.order()
	l.position()
	for i := range boxes {
		c := l.cells[i]
		boxes[i].x, boxes[i].y = c.at-c.size/2, l.top[c.layer]+(l.thick[c.layer]-c.thick)/2
		w, h = math.Max(w, boxes[i].x+c.size), math.Max(h, l.top[c.layer]+l.thick[c.layer])
	}
	for k, passing := range l.passing {
		back := l.cells[edges[k][0]].layer > l.cells[edges[k][1]].layer
		var route []point
		for _, i := range passing {
			c := l.cells[i]
			first, last := l.top[c.layer], l.top[c.layer]+l.thick[c.layer]
			if back {
				first, last = last, first
			}
			route = append(route, point{c.at, first}, point{c.at, last})
			w = math.Max(w, c.at+c.size/2)
		}
		routes = append(routes, route)
	}
	return routes, w, h
}

type layering struct {
	gap     spacing
	edges   [][2]int
	cells   []cell
	links   [][2]int // between neighbouring layers, from the earlier one
	passing [][]int  // by edge: its stand-ins, from its source on
	layers  [][]int  // cells in order
	top     []float64
	thick   []float64
}

// cell is a box, or stands for an edge that passes a layer.
type cell struct {
	size, thick float64 // along the layer, and across
	layer       int
	at          float64 // of its middle, along the layer
	up, down    []int   // its neighbours
}

// assign gives each box its layer: behind all that lead to it, but what nothing leads to as late as possible.
func (l *layering) assign() {
	n := len(l.cells)
	out := make([][]int, n)
	for _, e := range l.forward() {
		if e[0] != e[1] {
			out[e[0]] = append(out[e[0]], e[1])
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range n {
			for _, j := range out[i] {
				if l.cells[j].layer <= l.cells[i].layer {
					l.cells[j].layer, changed = l.cells[i].layer+1, true
				}
			}
		}
	}
	led := make([]bool, n)
	for i := range n {
		for _, j := range out[i] {
			led[j] = true
		}
	}
	for i := range n {
		if led[i] || len(out[i]) == 0 {
			continue
		}
		first := math.MaxInt
		for _, j := range out[i] {
			first = min(first, l.cells[j].layer)
		}
		l.cells[i].layer = first - 1
	}
}

// forward are the edges with those turned round that would close a cycle.
func (l *layering) forward() [][2]int {
	const unseen, open, done = 0, 1, 2
	state := make([]int, len(l.cells))
	out := slices.Clone(l.edges)
	var visit func(int)
	visit = func(i int) {
		state[i] = open
		for k, e := range l.edges {
			if e[0] != i {
				continue
			}
			switch state[e[1]] {
			case open:
				out[k] = [2]int{e[1], e[0]}
			case unseen:
				visit(e[1])
			}
		}
		state[i] = done
	}
	for i := range l.cells {
		if state[i] == unseen {
			visit(i)
		}
	}
	return out
}

// standIns cuts edges into links between neighbouring layers.
func (l *layering) standIns() {
	for _, e := range l.edges {
		from, to := e[0], e[1]
		step := 1
		if l.cells[from].layer > l.cells[to].layer {
			step = -1
		}
		var passing []int
		last := from
		for layer := l.cells[from].layer + step; (l.cells[to].layer-layer)*step > 0; layer += step {
			l.cells = append(l.cells, cell{size: 2, layer: layer})
			passing = append(passing, len(l.cells)-1)
			l.link(last, len(l.cells)-1)
			last = len(l.cells) - 1
		}
		if l.cells[last].layer != l.cells[to].layer {
			l.link(last, to)
		}
		l.passing = append(l.passing, passing)
	}
	for i, c := range l.cells {
		for len(l.layers) <= c.layer {
			l.layers = append(l.layers, nil)
		}
		l.layers[c.layer] = append(l.layers[c.layer], i)
	}
}

func (l *layering) link(a, b int) {
	if l.cells[a].layer > l.cells[b].layer {
		a, b = b, a
	}
	l.links = append(l.links, [2]int{a, b})
	l.cells[a].down = append(l.cells[a].down, b)
	l.cells[b].up = append(l.cells[b].up, a)
}

// order sorts the layers by the mean place of their neighbours, forth and back, and keeps the best.
func (l *layering) order() {
	best, fewest := l.clone(), l.crossings()
	for sweep := range 12 {
		place := l.places()
		mean := func(i int, neighbours []int) float64 {
			if len(neighbours) == 0 {
				return float64(place[i])
			}
			sum := 0
			for _, j := range neighbours {
				sum += place[j]
			}
			return float64(sum) / float64(len(neighbours))
		}
		for k := range l.layers {
			if sweep%2 == 1 {
				k = len(l.layers) - 1 - k
			}
			keys := make(map[int]float64)
			for _, i := range l.layers[k] {
				if sweep%2 == 0 {
					keys[i] = mean(i, l.cells[i].up)
				} else {
					keys[i] = mean(i, l.cells[i].down)
				}
			}
			slices.SortStableFunc(l.layers[k], func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
			for p, i := range l.layers[k] {
				place[i] = p
			}
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.clone(), n
		}
	}
	l.layers = best
}

func (l *layering) clone() [][]int {
	out := make([][]int, len(l.layers))
	for i := range out {
		out[i] = slices.Clone(l.layers[i])
	}
	return out
}

func (l *layering) places() []int {
	place := make([]int, len(l.cells))
	for _, layer := range l.layers {
		for p, i := range layer {
			place[i] = p
		}
	}
	return place
}

func (l *layering) crossings() int {
	place, n := l.places(), 0
	for i, a := range l.links {
		for _, b := range l.links[:i] {
			if l.cells[a[0]].layer == l.cells[b[0]].layer && (place[a[0]]-place[b[0]])*(place[a[1]]-place[b[1]]) < 0 {
				n++
			}
		}
	}
	return n
}

// position gives coordinates: along the layers near the neighbours, across by what is thickest.
func (l *layering) position() {
	for _, layer := range l.layers {
		l.spread(layer, func(int) float64 { return 0 })
	}
	for sweep := range 8 {
		for k := range l.layers {
			if sweep%2 == 1 {
				k = len(l.layers) - 1 - k
			}
			l.spread(l.layers[k], l.wanted)
		}
	}
	least := math.Inf(1)
	for _, c := range l.cells {
		least = math.Min(least, c.at-c.size/2)
	}
	for i := range l.cells {
		l.cells[i].at -= least
	}
	y := 0.0
	for _, layer := range l.layers {
		thick := 0.0
		for _, i := range layer {
			thick = math.Max(thick, l.cells[i].thick)
		}
		l.top, l.thick = append(l.top, y), append(l.thick, thick)
		y += thick + l.gap.layer
	}
}

// wanted is the mean of the neighbours.
func (l *layering) wanted(i int) float64 {
	c := l.cells[i]
	if len(c.up)+len(c.down) == 0 {
		return c.at
	}
	sum := 0.0
	for _, j := range slices.Concat(c.up, c.down) {
		sum += l.cells[j].at
	}
	return sum / float64(len(c.up)+len(c.down))
}

// spread moves the cells of a layer as near to where they want to be as their order and distances allow: the sum of squares is
// least. Neighbours that want to pass each other are held together and moved as one.
func (l *layering) spread(layer []int, wanted func(int) float64) {
	type group struct {
		sum float64
		n   int
	}
	mean := func(g group) float64 { return g.sum / float64(g.n) }
	offsets := make([]float64, len(layer))
	var groups []group
	for p, i := range layer {
		if p > 0 {
			offsets[p] = offsets[p-1] + (l.cells[layer[p-1]].size+l.cells[i].size)/2 + l.gap.neighbour
		}
		g := group{wanted(i) - offsets[p], 1}
		for len(groups) > 0 && mean(groups[len(groups)-1]) > mean(g) {
			last := groups[len(groups)-1]
			groups = groups[:len(groups)-1]
			g = group{g.sum + last.sum, g.n + last.n}
		}
		groups = append(groups, g)
	}
	p := 0
	for _, g := range groups {
		for range g.n {
			l.cells[layer[p]].at = mean(g) + offsets[p]
			p++
		}
	}
}
