package instance

import (
	"reflect"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
)

func TestRates(t *testing.T) {
	r := &recent{}
	at := time.UnixMilli(1_700_000_000_000)
	var s control.Status
	for i := range 121 { // a minute in steps of half a second, at 100 records a second, then at rest
		in := int64(50 * min(i, 60))
		r.add(&s, tasks.Totals{RecordsIn: in, RecordsOut: 2 * in}, at.Add(time.Duration(i)*500*time.Millisecond))
		if i == 60 && (s.Rates != control.Rates{In: 100, Out: 200}) {
			t.Errorf("in motion: %+v", s.Rates)
		}
	}
	if (s.Rates != control.Rates{}) || s.Counts.In != 3000 {
		t.Errorf("at rest: %+v, %+v", s.Rates, s.Counts)
	}
	if n := len(r.samples); n > int(rateWindow/rateStep)+1 {
		t.Errorf("%d samples are kept", n)
	}
}

// What arrives is what is processed and what the lag grows by; threads at work are those of the window.
func TestLoad(t *testing.T) {
	r := &recent{}
	at := time.UnixMilli(1_700_000_000_000)
	var s control.Status
	step := func(i int, active ...string) { // 100 records a second are processed in half of a thread's time, 60 more arrive
		s = control.Status{Active: active, Lag: map[string]int64{"0_0": int64(30 * i)}}
		r.add(&s, tasks.Totals{RecordsIn: int64(50 * i), Busy: time.Duration(i) * 250 * time.Millisecond}, at.Add(time.Duration(i)*500*time.Millisecond))
	}
	for i := range 20 {
		step(i, "0_0")
	}
	if s.Rates.In != 100 || s.Load.Arriving != 160 || s.Load.Busy != 0.5 {
		t.Errorf("%+v, %+v", s.Rates, s.Load)
	}
	// Of a task that has just come, the lag did not grow here.
	step(20, "0_0", "0_1")
	if s.Load.Arriving != 100 {
		t.Errorf("with another task: %+v", s.Load)
	}
}

// The most that a learner was behind is known until it learns no more.
func TestBehind(t *testing.T) {
	r := &recent{}
	step := func(l ...control.Learning) map[string]int64 {
		s := control.Status{Learning: l}
		r.add(&s, tasks.Totals{}, time.Now())
		return s.Behind
	}
	for i, c := range []struct {
		learning []control.Learning
		want     map[string]int64
	}{
		{[]control.Learning{{Task: "0_1", Lag: -1}}, nil},
		{[]control.Learning{{Task: "0_1", Lag: 500}}, map[string]int64{"0_1": 500}},
		{[]control.Learning{{Task: "0_1", Lag: 100}, {Task: "0_2", Lag: 7}}, map[string]int64{"0_1": 500, "0_2": 7}},
		{[]control.Learning{{Task: "0_2", Lag: 0}}, map[string]int64{"0_2": 7}},
		{nil, nil},
		{[]control.Learning{{Task: "0_1", Lag: 3}}, map[string]int64{"0_1": 3}},
	} {
		if got := step(c.learning...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
}

func TestHandoversAreRemembered(t *testing.T) {
	r := &recent{clientID: "words"}
	for i := range control.MaxHandovers + 5 {
		r.events().TakenOver(tasks.TakeoverInfo{
			Task: assign.TaskID{Partition: int32(i)}, Gap: 25 * time.Millisecond,
			Release: assign.ReleaseID{Generation: 7, Owner: "words-worker-2-0f8fad5b-d9cb-469f-a165-70867728950e"},
		})
	}
	var s control.Status
	r.add(&s, tasks.Totals{}, time.Now())
	if n := len(s.Handovers); n != control.MaxHandovers {
		t.Fatalf("%d handovers", n)
	}
	h := s.Handovers[0]
	h.AtMs = 0
	if want := (control.Handover{Task: "0_5", From: "worker-2", Generation: 7, GapMs: 25}); h != want {
		t.Errorf("%+v, want %+v", h, want)
	}
	s = control.Status{}
	if r.add(&s, tasks.Totals{}, time.Now().Add(handoversFor+time.Minute)); len(s.Handovers) != 0 {
		t.Errorf("an hour later: %d handovers", len(s.Handovers))
	}
	for member, want := range map[string]string{"": "", "words-a": "a", "other": "other", "words-a-b-0f8fad5bd9cb469fa16570867728950e": "a-b"} {
		if got := r.instanceOf(member); got != want {
			t.Errorf("%q: %q", member, got)
		}
	}
}
