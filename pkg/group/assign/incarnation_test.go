package assign

import (
	"math"
	"testing"
)

func TestIncarnationText(t *testing.T) {
	for _, want := range []Incarnation{
		{},
		{StartMs: 1732973339123, Random: 0x9f8e7d6c5b4a3f21, Starts: 3},
		{StartMs: math.MaxInt64, Random: math.MaxUint64, Starts: math.MaxUint32},
	} {
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Incarnation
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Errorf("%s came back as %+v, error %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "1", "1-2", "1-2-3-4", "x-0-0", "1-zz-0", "1-0-4294967296", "-1-0-0"} {
		var got Incarnation
		if err := got.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestSameRun(t *testing.T) {
	run := Incarnation{StartMs: 5, Random: 7}
	if !run.SameRun(Incarnation{StartMs: 5, Random: 7, Starts: 2}) {
		t.Error("a restart while draining is the same run")
	}
	if run.SameRun(Incarnation{StartMs: 5, Random: 8}) || run.SameRun(Incarnation{StartMs: 6, Random: 7}) {
		t.Error("another start is another run")
	}
}
