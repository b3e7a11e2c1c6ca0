package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

var now = time.UnixMilli(1_700_000_000_000)

func run(n int64) assign.Incarnation { return assign.Incarnation{StartMs: n, Random: uint64(n)} }

func status(instance string, state State, active ...string) Status {
	return Status{Version: version, Instance: instance, Incarnation: run(1), Generation: 7, State: state, Active: active, Seen: now}
}

func TestViewJSON(t *testing.T) {
	b := status("b", Draining, "0_10", "0_2")
	b.Lag = map[string]int64{"0_2": 5}
	b.Labels = map[string]string{"pool": "blue"}
	b.DeadlineMs = now.UnixMilli()
	b.Capacity, b.Rates = 3, Rates{In: 90, Out: 80}
	b.Load = Load{Arriving: 100.5, Threads: 8, Busy: 0.5, StateBytes: 7, FreeBytes: 9}
	a := status("a", Running)
	a.Generation = 8
	a.Learning = []Learning{{Task: "0_10", Lag: 3}, {Task: "0_2", Lag: 0, Ready: true}}
	a.Standby = []string{"1_0"}
	dead := status("dead", Running, "0_2")
	dead.Seen = now.Add(-StaleAfter - 1)
	left := status("left", Drained)
	left.Left = LeftDrained
	late := status("late", Running, "0_2") // an older status that still claims a task
	late.Generation = 6

	got, err := json.MarshalIndent(NewView("words", []Status{b, a, dead, left, late}, now), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"app":"words","generation":8,"instances":[` +
		`{"id":"a","state":"running","labels":{},"capacity":1,"active":[],"learning":[{"task":"0_2","lag":0,"ready":true},{"task":"0_10","lag":3,"ready":false}],"standby":["1_0"],` +
		`"load":{"in":0,"out":0,"arriving":0,"lag":0,"threads":0,"busy":0,"headroom":1,"state_bytes":0,"free_bytes":0},"drain":null},` +
		`{"id":"b","state":"draining","labels":{"pool":"blue"},"capacity":3,"active":["0_2","0_10"],"learning":[],"standby":[],` +
		`"load":{"in":90,"out":80,"arriving":100.5,"lag":5,"threads":8,"busy":0.5,"headroom":0.75,"state_bytes":7,"free_bytes":9},"drain":{"tasks":2,"deadline_ms":1700000000000}},` +
		`{"id":"late","state":"running","labels":{},"capacity":1,"active":["0_2"],"learning":[],"standby":[],"load":{"in":0,"out":0,"arriving":0,"lag":0,"threads":0,"busy":0,"headroom":1,"state_bytes":0,"free_bytes":0},"drain":null}],` +
		`"tasks":[{"id":"0_2","active":"b","learner":"a","lag":5},{"id":"0_10","active":"b","learner":"a","lag":0},{"id":"1_0","active":null,"learner":null,"lag":0}]}`
	var compact, wanted any
	if json.Unmarshal(got, &compact) != nil || json.Unmarshal([]byte(want), &wanted) != nil {
		t.Fatal("no JSON")
	}
	if one, two := mustJSON(t, compact), mustJSON(t, wanted); one != two {
		t.Errorf("got  %s\nwant %s", one, two)
	}

	empty := mustJSON(t, NewView("words", nil, now))
	if empty != `{"app":"words","generation":0,"instances":[],"tasks":[]}` {
		t.Errorf("an empty group: %s", empty)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAllLeaving(t *testing.T) {
	for _, c := range []struct {
		want     bool
		statuses []Status
	}{
		{false, nil},
		{true, []Status{status("a", Draining), status("b", Drained)}},
		{false, []Status{status("a", Draining), status("b", Running)}},
		{false, []Status{status("a", Draining), status("b", Starting)}},
	} {
		if got := NewView("", c.statuses, now).AllLeaving(); got != c.want {
			t.Errorf("%+v: %v", c.statuses, got)
		}
	}
}

func TestWatch(t *testing.T) {
	target := Target{Instance: "a", Incarnation: run(1)}
	mark := Mark{Instance: "a", Incarnation: run(1)}
	with := func(s Status, change func(*Status)) Status { change(&s); return s }
	left := func(why string) Status { return with(status("a", Stopping), func(s *Status) { s.Left = why }) }
	type step struct {
		after  time.Duration // since the last step
		status Status
		marks  []Mark
		want   Outcome
	}
	marked, unmarked := []Mark{mark}, []Mark{}
	for name, steps := range map[string][]step{
		"drains and leaves": {
			{0, status("a", Running, "0_0"), marked, Waiting},
			{0, status("a", Draining, "0_0"), marked, Waiting},
			{0, status("a", Drained), unmarked, Complete},
			{0, status("b", Running), unmarked, Complete},
		},
		"is seen only after it left":         {{0, left(LeftDrained), unmarked, Complete}},
		"times out":                          {{0, status("a", Draining, "0_0"), marked, Waiting}, {0, left(LeftTimeout), unmarked, TimedOut}},
		"gives up at once":                   {{0, left(LeftNow), unmarked, TimedOut}},
		"is cancelled while draining":        {{0, status("a", Draining, "0_0"), nil, Waiting}, {0, status("a", Running, "0_0"), nil, Withdrawn}},
		"is stopped otherwise":               {{0, with(status("a", Draining), func(s *Status) { s.Seen = now.Add(-time.Minute) }), marked, Lost}},
		"is another run":                     {{0, with(status("a", Running), func(s *Status) { s.Incarnation = run(2) }), marked, Lost}},
		"was never there":                    {{0, status("b", Running), marked, Lost}},
		"drains again after a restart":       {{0, with(status("a", Draining, "0_0"), func(s *Status) { s.Incarnation.Starts = 2 }), marked, Waiting}},
		"stays unmarked without our knowing": {{0, status("a", Running), nil, Waiting}, {time.Minute, status("a", Running), nil, Waiting}},
		"is cancelled before it noticed": {
			{0, status("a", Running), unmarked, Waiting},
			{unmarkedFor, status("a", Running), unmarked, Withdrawn},
		},
		"has nothing to give, and its status is late": {
			{0, status("a", Running), unmarked, Waiting},
			{time.Second, left(LeftDrained), unmarked, Complete},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWatch([]Target{target})
			at := now
			for i, s := range steps {
				at = at.Add(s.after)
				if s.after > 0 {
					s.status.Seen = at
				}
				if got := w.Observe([]Status{s.status}, s.marks, at); got[0].Outcome != s.want {
					t.Fatalf("step %d: %s, want %s", i, got[0].Outcome, s.want)
				}
			}
		})
	}

	a, b := status("a", Draining, "0_1", "0_0"), status("b", Running, "0_2")
	b.Learning = []Learning{{Task: "0_1", Lag: 9}}
	p := NewWatch([]Target{target}).Observe([]Status{a, b}, nil, now)[0]
	if len(p.Tasks) != 2 || p.Tasks[0].ID != "0_0" || p.Tasks[0].Learner != nil || *p.Tasks[1].Learner != "b" || p.Lag["0_1"].Lag != 9 {
		t.Errorf("what is left: %+v, %+v", p.Tasks, p.Lag)
	}
}

func TestFailedTasks(t *testing.T) {
	b := status("b", Running, "0_2", "0_10")
	b.Fail("0_10", errors.New("second"), 2)
	b.Fail("0_2", fmt.Errorf("%s\n\tof two lines", strings.Repeat("ä", maxErrorBytes)), 1)
	a := status("a", Running)
	for i := range MaxFailed + 5 {
		a.Fail(fmt.Sprintf("1_%d", i), errors.New("all"), 3)
	}
	v := NewView("words", []Status{b, a}, now)
	if v.FailedTasks != MaxFailed+7 || len(v.Failed) != MaxFailed+2 {
		t.Errorf("%d failed tasks, %d of them listed", v.FailedTasks, len(v.Failed))
	}
	if f := v.Failed[0]; f.Instance != "b" || f.Task != "0_2" || f.Failures != 1 || len(f.Error) > maxErrorBytes+4 || !utf8.ValidString(f.Error) {
		t.Errorf("first: %+v", f)
	}
	if f := v.Failed[1]; f.Task != "0_10" || f.Error != "second" {
		t.Errorf("second: %+v", f)
	}
	if text := mustJSON(t, v); strings.Contains(text, "second") {
		t.Errorf("the JSON form has no place for failures: %s", text)
	}
	if text := mustJSON(t, b); !strings.Contains(text, `"failed":[{"task":"0_10","error":"second","failures":2},`) {
		t.Errorf("a status: %s", text)
	}
}

func TestPick(t *testing.T) {
	blue := status("b", Running)
	blue.Labels = map[string]string{"pool": "blue", "zone": "x"}
	gone := status("gone", Running)
	gone.Labels, gone.Seen = blue.Labels, now.Add(-time.Hour)
	all := []Status{status("c", Running), blue, gone}
	for _, c := range []struct {
		instance, selector string
		want, wantErr      string
	}{
		{instance: "c", want: "c"},
		{selector: "pool=blue", want: "b"},
		{selector: "pool=blue, zone=x", want: "b"},
		{selector: "pool=blue,zone=y", wantErr: "no instance matches the selector: running are b, c"},
		{selector: "pool=", wantErr: "no instance matches"},
		{instance: "d", wantErr: "no instance d: running are b, c"},
		{instance: "gone", wantErr: "is gone: last seen"},
		{selector: "pool", wantErr: "want label=value"},
		{selector: "pool=a,pool=b", wantErr: "cannot be both"},
	} {
		var sel Selector
		var err error
		var got []Target
		if c.selector != "" {
			sel, err = ParseSelector(c.selector)
		}
		if err == nil {
			got, err = Pick(all, c.instance, sel, now)
		}
		var names []string
		for _, p := range got {
			names = append(names, p.Instance)
		}
		if joined := strings.Join(names, ","); joined != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%q %q: got %q, %v; want %q, %q", c.instance, c.selector, joined, err, c.want, c.wantErr)
		}
	}
	if _, err := Pick(nil, "a", nil, now); err == nil || !strings.Contains(err.Error(), "none is running") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestDue(t *testing.T) {
	base := status("a", Running, "0_0")
	base.Learning = []Learning{{Task: "0_1", Lag: 100}}
	change := func(f func(*Status)) Status {
		s := base
		s.Learning = append([]Learning(nil), base.Learning...)
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		next  Status
		since time.Duration
		want  bool
	}{
		"nothing changed":             {base, heartbeat - 1, false},
		"nothing changed for long":    {base, heartbeat, true},
		"state changed":               {change(func(s *Status) { s.State = Draining }), minInterval, true},
		"state changed again at once": {change(func(s *Status) { s.State = Draining }), minInterval - 1, false},
		"a learner is ready":          {change(func(s *Status) { s.Learning[0].Ready = true }), minInterval, true},
		"a learner's lag moved":       {change(func(s *Status) { s.Learning[0].Lag = 50 }), lagInterval, true},
		"a learner's lag just moved":  {change(func(s *Status) { s.Learning[0].Lag = 50 }), lagInterval - 1, false},
		"a task fails":                {change(func(s *Status) { s.Fail("0_0", errors.New("x"), 1) }), minInterval, true},
		"input lag moved":             {change(func(s *Status) { s.Lag = map[string]int64{"0_0": 4} }), heartbeat - 1, false},
		"the clock moved":             {change(func(s *Status) { s.UpdatedMs++ }), heartbeat - 1, false},
	} {
		if got := due(&base, c.next, c.since); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !due(nil, base, 0) {
		t.Error("the first status is due")
	}
	once, again := base, base
	once.Fail("0_0", errors.New("x"), 1)
	again.Fail("0_0", errors.New("x"), 2)
	if due(&once, again, heartbeat-1) {
		t.Error("one more attempt is due")
	}
}

// Threads without a task are no headroom.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		threads, tasks int
		busy, want     float64
	}{
		{8, 8, 6, 0.25}, {8, 20, 6, 0.25}, {8, 4, 3, 0.25}, {8, 0, 0, 1}, {0, 3, 0, 1}, {4, 4, 5, 0}, {4, 4, 0, 1},
	} {
		s := Status{Active: make([]string, c.tasks), Load: Load{Threads: c.threads, Busy: c.busy}}
		if got := s.Headroom(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
