package assign

import (
	"reflect"
	"testing"
)

// TestScaleDown checks the first placements of the scale-down example; testdata has the whole of it.
func TestScaleDown(t *testing.T) {
	id := func(n int32) TaskID { return TaskID{Partition: n} }
	in := Input{Generation: 2}
	for n := int32(1); n <= 5; n++ {
		in.Tasks = append(in.Tasks, Task{ID: id(n), Stateful: true})
	}
	in.Members = []Member{
		{ID: "S1", Report: Report{Owned: []TaskID{id(1), id(2)}}},
		{ID: "S2", Report: Report{Owned: []TaskID{id(3), id(4)}, Leaving: true}},
		{ID: "S3", Report: Report{Owned: []TaskID{id(5)}}},
	}
	want := Plan{
		"S1": {Own: []TaskID{id(1), id(2)}, Learn: []TaskID{id(3)}},
		"S2": {Own: []TaskID{id(3), id(4)}},
		"S3": {Own: []TaskID{id(5)}, Learn: []TaskID{id(4)}},
	}
	if got := Assign(in); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
