package draw

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// Random graphs: no two boxes touch, edges lead forward where there are no cycles, and the same graph gives the same drawing.
func TestLayered(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + r.IntN(20)
		var edges [][2]int
		for range r.IntN(3 * n) {
			edges = append(edges, [2]int{r.IntN(n), r.IntN(n)})
		}
		fresh := func() []box {
			boxes := make([]box, n)
			for i := range boxes {
				boxes[i] = box{w: float64(10 + i), h: float64(5 + i%7)}
			}
			return boxes
		}
		gap := spacing{layer: 20, neighbour: 10}
		boxes, again := fresh(), fresh()
		routes, w, h := layered(boxes, edges, gap)
		routesAgain, _, _ := layered(again, edges, gap)
		if !reflect.DeepEqual(boxes, again) || !reflect.DeepEqual(routes, routesAgain) {
			t.Fatalf("two drawings of %v differ", edges)
		}
		for i, a := range boxes {
			if a.x < -1e-6 || a.y < 0 || a.x+a.w > w+1e-6 || a.y+a.h > h+1e-6 {
				t.Fatalf("box %d (%+v) is outside of %v x %v", i, a, w, h)
			}
			for _, b := range boxes[:i] {
				if a.x < b.x+b.w+gap.neighbour-1e-6 && b.x < a.x+a.w+gap.neighbour-1e-6 && a.y < b.y+b.h && b.y < a.y+a.h {
					t.Fatalf("%+v and %+v touch", a, b)
				}
			}
		}
		if len(routes) != len(edges) {
			t.Fatalf("%d routes of %d edges", len(routes), len(edges))
		}
	}
}

// A chain without cycles goes straight on, and an edge that passes a layer is led round what is there.
func TestLayeredChain(t *testing.T) {
	boxes := []box{{w: 10, h: 10}, {w: 30, h: 10}, {w: 10, h: 10}}
	routes, _, h := layered(boxes, [][2]int{{0, 1}, {1, 2}, {0, 2}}, spacing{layer: 20, neighbour: 5})
	if h != 70 || boxes[0].y != 0 || boxes[1].y != 30 || boxes[2].y != 60 {
		t.Errorf("boxes %+v, height %v", boxes, h)
	}
	if len(routes[0])+len(routes[1]) > 0 || len(routes[2]) != 2 {
		t.Fatalf("routes %v", routes)
	}
	if x := routes[2][0].x; x > boxes[1].x-4 && x < boxes[1].x+boxes[1].w+4 {
		t.Errorf("the long edge passes at %v, through %+v", x, boxes[1])
	}
}

// A cycle is drawn with one edge that leads back.
func TestLayeredCycle(t *testing.T) {
	boxes := []box{{w: 10, h: 10}, {w: 10, h: 10}, {w: 10, h: 10}}
	layered(boxes, [][2]int{{0, 1}, {1, 2}, {2, 0}, {1, 1}}, spacing{layer: 20, neighbour: 5})
	if !(boxes[0].y < boxes[1].y && boxes[1].y < boxes[2].y) || math.IsNaN(boxes[0].x) {
		t.Errorf("boxes %+v", boxes)
	}
}
