package assign

import (
	"slices"
	"strings"
)

// indexRacks numbers the racks of the members, and the sets of these that have the input of tasks.
func (g *group) indexRacks(reports []*Member, in []Task) {
	index := make(map[string]int32)
	for i, r := range reports {
		rack, known := index[r.Rack]
		if !known {
			rack = int32(len(index))
			index[r.Rack] = rack
		}
		g.members[i].rack = rack
	}
	g.rackCount = len(index)
	if g.rackCount <= 1 {
		return // nothing to choose
	}
	sets := make(map[string]int32)
	byID := taskIndex(g.tasks)
	for _, t := range in {
		if len(t.Racks) == 0 {
			continue
		}
		key := strings.Join(t.Racks, "\x00")
		set, known := sets[key]
		if !known {
			set = int32(len(g.rackSets)) + 1
			sets[key] = set
			has := make([]bool, g.rackCount)
			for name, rack := range index {
				has[rack] = name != "" && slices.Contains(t.Racks, name)
			}
			g.rackSets = append(g.rackSets, has)
		}
		g.tasks[byID[t.ID]].racks = set
	}
}

// near is 1 if the rack is in the set, else 0.
func (g *group) near(set, rack int32) int {
	if set > 0 && g.rackSets[set-1][rack] {
		return 1
	}
	return 0
}

// compareRacks orders racks as they suit a task; nil: there is nothing to choose.
type compareRacks func(a, b int32) int

// fits prefers racks that have the task's input, then those that its home is not in.
func (g *group) fits(t int32) compareRacks {
	if g.rackCount <= 1 {
		return nil
	}
	k := &g.tasks[t]
	return func(a, b int32) int {
		if c := g.near(k.racks, b) - g.near(k.racks, a); c != 0 || k.home == none {
			return c
		}
		home := g.members[k.home].rack
		return orderBools(a != home, b != home)
	}
}

// elsewhere prefers racks other than the given one.
func (g *group) elsewhere(rack int32) compareRacks {
	if g.rackCount <= 1 {
		return nil
	}
	return func(a, b int32) int { return orderBools(a != rack, b != rack) }
}

// orderBools puts true first.
func orderBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
