package topology

import (
	"reflect"
	"testing"
)

// Steps that need another key are in a subtopology of their own, behind an internal topic.
func TestGraph(t *testing.T) {
	top := parse(t, `
streams:
  - {name: copy, from: lines, steps: [to: all]}
  - name: lines
    from: {topic: lines, value: string}
    steps: [{flat_map: 'split(value, " ")'}, {rekey: value}, {count: {store: counts}}, {to: {topic: counts, value: int}}]
`)
	counts := []GraphStore{{Name: "counts", Changelog: "app-counts-changelog"}}
	want := Graph{
		Subtopologies: []GraphPart{
			{ID: 0, Steps: []GraphNode{
				{ID: "s0_0", Label: "copy", Stream: "stream copy"},
				{ID: "s0_1_0", Label: `flat_map split(value, " ")`, Stream: "stream lines"}, {ID: "s0_1_1", Label: "rekey value", Stream: "stream lines"},
			}},
			{ID: 1, Stateful: true, Steps: []GraphNode{
				{ID: "s1_0_0", Label: "count (store counts: key string, value int)", Stream: "stream lines", Stores: counts},
			}},
		},
		Topics: []GraphNode{{ID: "t0", Label: "lines"}, {ID: "t1", Label: "all"}, {ID: "t2", Label: "app-counts-repartition", Internal: true}, {ID: "t3", Label: "counts"}},
		Edges:  []GraphEdge{{"t0", "s0_0"}, {"s0_0", "t1"}, {"t0", "s0_1_0"}, {"s0_1_0", "s0_1_1"}, {"s0_1_1", "t2"}, {"t2", "s1_0_0"}, {"s1_0_0", "t3"}},
	}
	if got := top.Graph(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
