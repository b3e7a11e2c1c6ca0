package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/control"
)

func TestAdvise(t *testing.T) {
	a := newApplication(t)
	for instance, task := range map[string]string{"a": "0_0", "b": "0_1"} {
		a.put(t, instance, control.Running, func(s *control.Status) {
			s.Active, s.Lag, s.Rates = []string{task, task + "0"}, map[string]int64{task: 3000}, control.Rates{In: 2000}
			s.Load = control.Load{Arriving: 2000, Threads: 2, Busy: 1.8}
		})
	}
	var s shell
	if code := s.run(t, a.flags("advise")...); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	want := `words needs 3 instances, 1 more than there are.

- to process 4000 records/s and work off 6000 records in 10m0s, 3.6 threads are at work; with 2 threads in an instance, of which 70 % may be, that takes 3 instances

arriving 4,000 records/s, processed 4,000
at work 3.6 of 4 threads, each 1,111 records/s
behind 6,000, worked off in 14s
`
	if s.stdout != want {
		t.Errorf("got:\n%s\nwant:\n%s", s.stdout, want)
	}
	var got struct {
		App       string   `json:"app"`
		Needed    int      `json:"needed"`
		Instances int      `json:"instances"`
		Reasons   []string `json:"reasons"`
	}
	if code := s.run(t, a.flags("advise", "--max", "2", "--for", "1ms", "-o", "json")...); code != exitOK || json.Unmarshal([]byte(s.stdout), &got) != nil ||
		got.App != "words" || got.Needed != 2 || got.Instances != 2 || !strings.HasPrefix(got.Reasons[0], "at most 2") {
		t.Errorf("exit code %d: %s%s", code, s.stdout, s.stderr)
	}
	for _, wrong := range []string{"--target=0", "--target=1.5", "--tolerance=1", "--catch-up=1ms", "--min=0", "--max=-1", "--for=-1s"} {
		if code := s.run(t, a.flags("advise", wrong)...); code != exitUsage {
			t.Errorf("%s: exit code %d: %s", wrong, code, s.stderr)
		}
	}
	a.put(t, "c", control.Running, nil)
	if code := s.run(t, a.flags("advise")...); code != exitError || !strings.Contains(s.stderr, "c is of a former version") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}
