package topology

import (
	"reflect"
	"testing"
)

// Steps that need another key are in a subtopology of their own, behind an internal topic.
func TestGraph(t *testing.T) {
	top := parse(t, `
streams:
  - name: lines
    from: {topic: lines, value: string}
    steps: [{flat_map: 'split(value, " ")'}, {rekey: value}, {count: {store: counts}}, {to: {topic: counts, value: int}}]
`)
	want := Graph{
		Subtopologies: []GraphPart{
			{ID: 0, Steps: []GraphNode{{ID: "s0_0_0", Label: `flat_map split(value, " ")`}, {ID: "s0_0_1", Label: "rekey value"}}},
			{ID: 1, Stateful: true, Steps: []GraphNode{{ID: "s1_0_0", Label: "count (store counts: key string, value int)", Store: "counts"}}},
		},
		Topics: []GraphNode{{ID: "t0", Label: "lines"}, {ID: "t1", Label: "app-counts-repartition", Internal: true}, {ID: "t2", Label: "counts"}},
		Edges:  []GraphEdge{{"t0", "s0_0_0"}, {"s0_0_0", "s0_0_1"}, {"s0_0_1", "t1"}, {"t1", "s1_0_0"}, {"s1_0_0", "t2"}},
	}
	if got := top.Graph(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
