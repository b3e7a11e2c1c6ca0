package advise

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
)

var now = time.UnixMilli(1_700_000_000_000)

// worker is an instance of four threads and four tasks.
func worker(id int, change func(*control.Status)) control.Status {
	s := control.Status{Instance: fmt.Sprint("w", id), State: control.Running, Capacity: 1, Seen: now, Lag: map[string]int64{}}
	s.Load.Threads = 4
	for p := range 4 {
		s.Active = append(s.Active, fmt.Sprintf("%d_%d", id, p))
	}
	if change != nil {
		change(&s)
	}
	return s
}

// workers are so many of them that share what arrives, at 1,000 records/s for a thread that is at work.
func workers(n int, arriving, processed float64, lag int64, change func(*control.Status)) []control.Status {
	var all []control.Status
	for i := range n {
		all = append(all, worker(i, func(s *control.Status) {
			s.Load.Arriving, s.Rates.In = arriving/float64(n), processed/float64(n)
			s.Load.Busy = s.Rates.In / 1000
			s.Lag[s.Active[0]] = lag / int64(n)
			if change != nil {
				change(s)
			}
		}))
	}
	return all
}

func TestAdvise(t *testing.T) {
	leaves := func(s *control.Status) { s.State = control.Draining }
	for name, c := range map[string]struct {
		statuses []control.Status
		policy   Policy
		want     int
		first    string // of the reasons
		also     string
	}{
		// An instance may have 2.8 of its 4 threads at work: 2,800 records/s.
		"enough":                    {workers(3, 8000, 8000, 0, nil), Policy{}, 3, "to process 8000 records/s, 8 threads are at work; with 4 threads in an instance, of which 70 % may be, that takes 3 instances", ""},
		"exactly enough":            {workers(3, 8400, 8400, 0, nil), Policy{}, 3, "to process", ""},
		"one more":                  {workers(3, 8500, 8500, 0, nil), Policy{}, 4, "that takes 4 instances", ""},
		"many more":                 {workers(3, 28000, 12000, 0, nil), Policy{Max: 20}, 10, "that takes 10 instances", ""},
		"another target":            {workers(3, 8000, 8000, 0, nil), Policy{Target: 0.5}, 4, "of which 50 %", ""},
		"fewer":                     {workers(4, 4000, 4000, 0, nil), Policy{}, 2, "that takes 2 instances", ""},
		"fewer, but close":          {workers(4, 8000, 8000, 0, nil), Policy{}, 4, "fewer than 4 would be too close to the limit: they have to stay 15 % below it", "that takes 3 instances"},
		"fewer, but not so many":    {workers(6, 5500, 5500, 0, nil), Policy{}, 3, "fewer than 3 would be too close", ""},
		"a lag to be worked off":    {workers(3, 8000, 8000, 1_200_000, nil), Policy{}, 4, "and work off 1200000 records in 10m0s, 10 threads are at work", ""},
		"with more time":            {workers(3, 8000, 8000, 1_200_000, nil), Policy{CatchUp: time.Hour}, 3, "in 1h0m0s", ""},
		"nothing to do":             {workers(3, 0, 0, 0, nil), Policy{}, 1, "nothing arrives and nothing is behind", ""},
		"nothing to do, two wanted": {workers(3, 0, 0, 0, nil), Policy{Min: 2}, 2, "at least 2 are wanted", "nothing arrives"},
		"not more than wanted":      {workers(3, 28000, 12000, 0, nil), Policy{Max: 5}, 5, "at most 5 are wanted", ""},
		"nothing is processed": {
			workers(3, 100, 0, 9000, func(s *control.Status) { s.FailedTasks = 1 }), Policy{}, 3,
			"9000 records wait and nothing is processed", "3 tasks cannot go on",
		},
		"more than tasks": {
			workers(2, 60000, 8000, 0, nil), Policy{}, 8, "there are 8 tasks: more instances would have nothing to do", "that takes 22 instances",
		},
		"twice the capacity": {
			workers(2, 8500, 8500, 0, func(s *control.Status) { s.Capacity, s.Load.Threads = 2, 8 }), Policy{}, 2, "with 8 threads in an instance", "",
		},
		"capacity beyond its threads": { // half of the tasks and a third of the threads: 4 of 8 and 2 of 6
			[]control.Status{
				worker(0, func(s *control.Status) { s.Load = control.Load{Arriving: 2000, Threads: 2, Busy: 2}; s.Rates.In = 2000 }),
				worker(1, func(s *control.Status) { s.Load = control.Load{Arriving: 2000, Threads: 4, Busy: 2}; s.Rates.In = 2000 }),
			}, Policy{}, 3, "with 2 threads in an instance", "w0 is at its limit (100 %)",
		},
		"leaving ones do not count": {
			append(workers(2, 4000, 4000, 0, nil), worker(7, func(s *control.Status) { leaves(s); s.Load.Arriving, s.Rates.In, s.Load.Busy = 4000, 4000, 4 })),
			Policy{}, 3, "to process 8000 records/s", "not counted: 1 instance leaving",
		},
		"held up elsewhere": {
			workers(3, 9000, 3000, 0, func(s *control.Status) { s.Load.Busy = 0.2 }), Policy{}, 3, "though the threads have little to do (5 %)", "that takes 1 instance",
		},
		"disks": {
			workers(4, 4000, 4000, 0, func(s *control.Status) { s.Load.StateBytes, s.Load.FreeBytes = 60<<30, 40<<30 }), Policy{}, 3,
			"240 GiB of state, and 100 GiB of disk for an instance of which 80 % may be used, take 3 instances", "that takes 2 instances",
		},
		"a disk that is not known": {
			workers(4, 4000, 4000, 0, func(s *control.Status) {
				if s.Load.StateBytes = 60 << 30; s.Instance != "w3" {
					s.Load.FreeBytes = 40 << 30
				}
			}), Policy{}, 2, "that takes 2 instances", "",
		},
		"gone ones": {
			append(workers(3, 8000, 8000, 0, nil), worker(8, func(s *control.Status) { s.Seen = now.Add(-time.Hour); s.Load.Busy = 4 }),
				worker(9, func(s *control.Status) { s.Left = control.LeftDrained; s.Load.Busy = 4 })), Policy{}, 3, "to process 8000", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Advise(c.statuses, c.policy, now)
			if err != nil {
				t.Fatal(err)
			}
			if a.Needed != c.want || !strings.Contains(a.Reasons[0], c.first) {
				t.Errorf("%d are needed, want %d first because of %q: %q", a.Needed, c.want, c.first, a.Reasons)
			}
			if c.also != "" && !slices.ContainsFunc(a.Reasons[1:], func(r string) bool { return strings.Contains(r, c.also) }) {
				t.Errorf("no %q in %q", c.also, a.Reasons)
			}
		})
	}
}

func TestAdviceIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []control.Status
		want     error
	}{
		"nobody":            {nil, ErrNobody},
		"all are leaving":   {[]control.Status{worker(0, func(s *control.Status) { s.State = control.Draining })}, ErrNobody},
		"an older instance": {[]control.Status{worker(0, nil), worker(1, func(s *control.Status) { s.Load = control.Load{} })}, ErrUntold},
	} {
		if _, err := Advise(c.statuses, Policy{}, now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// What is behind takes the threads that are left over.
func TestTimeToCatchUp(t *testing.T) {
	for _, c := range []struct {
		arriving float64
		lag      int64
		want     float64 // seconds; 0: null
	}{
		{8000, 12000, 3}, // 12 threads, 4,000 records/s to spare
		{11999, 600, 600},
		{12000, 600, 0},
		{8000, 0, 0},
	} {
		a, err := Advise(workers(3, c.arriving, min(c.arriving, 12000), c.lag, nil), Policy{}, now)
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		if a.SecondsToCatchUp != nil {
			got = *a.SecondsToCatchUp
		}
		if got != c.want {
			t.Errorf("%v arrive, %d behind: %v s, want %v", c.arriving, c.lag, got, c.want)
		}
	}
}

// Following the advice, the number of instances rests whatever the load, and a load that moves a little does not move it.
func TestAdviceRests(t *testing.T) {
	for arriving := 500.0; arriving <= 40000; arriving += 250 {
		n := 1
		for range 10 {
			n = follow(t, n, arriving)
		}
		if next := follow(t, n, arriving); next != n {
			t.Errorf("at %v records/s it goes from %d to %d", arriving, n, next)
		}
		if more := follow(t, n, arriving*0.95); more != n {
			t.Errorf("at %v records/s, 5 %% less than before, it goes from %d to %d", arriving*0.95, n, more)
		}
	}
}

func follow(t *testing.T, n int, arriving float64) int {
	t.Helper()
	a, err := Advise(workers(n, arriving, min(arriving, float64(4000*n)), 0, nil), Policy{Max: 1000}, now)
	if err != nil {
		t.Fatal(err)
	}
	return a.Needed
}

func TestMean(t *testing.T) {
	look := func(in float64, run int64) []control.Status {
		return []control.Status{worker(0, func(s *control.Status) {
			s.Rates, s.Load.Arriving, s.Load.Busy = control.Rates{In: in, Out: 2 * in}, in+1, in/1000
			s.Incarnation = assign.Incarnation{StartMs: run}
		})}
	}
	got := Mean([][]control.Status{look(9999, 1), look(1000, 2), look(3000, 2)})[0]
	if got.Rates != (control.Rates{In: 2000, Out: 4000}) || got.Load.Arriving != 2001 || got.Load.Busy != 2 || got.Load.Threads != 4 {
		t.Errorf("%+v", got)
	}
	if Mean(nil) != nil {
		t.Error("no look")
	}
}
