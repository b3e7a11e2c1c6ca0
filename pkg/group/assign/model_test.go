package assign

import (
	"fmt"
	"slices"
	"testing"
)

// claim is all that a member can say about a task in the small model of the group.
type claim struct {
	kind       string // "", owned, releasing, taking, learning or ready
	generation int32  // of the release identity
}

var allClaims = []claim{{}, {"owned", 0}, {"releasing", 3}, {"releasing", 4}, {"taking", 3}, {"taking", 4}, {"learning", 0}, {"ready", 0}}

// TestSmallModel enumerates every state of one task on three members, leaving or not, and compares who
// owns, releases and takes with a step written for this case alone, the one whose handovers an explicit-state model was checked with. Learners
// are left to the other tests.
func TestSmallModel(t *testing.T) {
	const generation = 5
	id := TaskID{0, 0}
	n := len(allClaims)
	for state := range n * n * n * 8 {
		claims := []claim{allClaims[state%n], allClaims[state/n%n], allClaims[state/n/n%n]}
		leaving := []bool{state/n/n/n&1 != 0, state/n/n/n&2 != 0, state/n/n/n&4 != 0}
		in := Input{Generation: generation, Tasks: []Task{{ID: id, Stateful: true}}}
		for m, c := range claims {
			x := Member{ID: fmt.Sprint(m), Report: Report{Leaving: leaving[m]}}
			h := []Handover{{id, ReleaseID{c.generation, "old"}}}
			switch c.kind {
			case "owned":
				x.Owned = []TaskID{id}
			case "releasing":
				x.Releasing = h
			case "taking":
				x.Taking = h
			case "ready":
				x.Ready = []TaskID{id}
				fallthrough
			case "learning":
				x.Learning = []Copy{{Task: id}}
			}
			in.Members = append(in.Members, x)
		}
		plan := Assign(in)
		got := make([]string, 3)
		for m := range got {
			p := plan[fmt.Sprint(m)]
			switch {
			case len(p.Own) > 0:
				got[m] = "own"
			case len(p.Take) > 0:
				got[m] = fmt.Sprintf("take %v", p.Take[0].Release)
			case len(p.Release) > 0:
				got[m] = fmt.Sprintf("release %v", p.Release[0].Release)
			}
		}
		if want := smallStep(generation, claims, leaving); !slices.Equal(got, want) {
			t.Errorf("%v, leaving %v: got %q, want %q", claims, leaving, got, want)
		}
	}
}

// smallStep plans for one task; with one, nothing is ever moved for balance.
func smallStep(generation int32, claims []claim, leaving []bool) []string {
	find := func(kind string, ok func(m int) bool) int {
		return slices.IndexFunc([]int{0, 1, 2}, func(m int) bool { return claims[m].kind == kind && ok(m) })
	}
	anyone := func(int) bool { return true }
	stays := func(m int) bool { return !leaving[m] }
	first := func(found ...int) int {
		for _, m := range found {
			if m >= 0 {
				return m
			}
		}
		return -1
	}
	newest := func(kind string) int {
		return first(find(kind, func(m int) bool { return claims[m].generation == 4 }), find(kind, anyone))
	}
	owner, taker := first(find("owned", anyone), newest("releasing")), newest("taking")
	ready := first(find("ready", stays), find("ready", anyone))
	learner := first(find("learning", stays), find("learning", anyone))
	said := make([]string, 3)
	release := func(to int) {
		h := ReleaseID{generation, fmt.Sprint(owner)}
		if claims[owner].kind == "releasing" {
			h = ReleaseID{claims[owner].generation, "old"}
		}
		said[owner], said[to] = fmt.Sprintf("release %v", h), fmt.Sprintf("take %v", h)
	}
	switch {
	case owner < 0:
		said[first(taker, ready, learner, slices.Index(leaving, false), 0)] = "own"
	case taker >= 0 && (claims[owner].kind == "releasing" || stays(taker)):
		release(taker)
	case leaving[owner] && ready >= 0 && stays(ready):
		release(ready)
	default:
		said[owner] = "own"
	}
	return said
}
