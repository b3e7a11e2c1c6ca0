//go:build integration

package integration

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestRestart restarts an instance on its state directory, after SIGTERM (keep, as it has an id) and after kill -9:
// it gets its tasks back at once, nobody else runs them meanwhile, and only the end of the changelogs is replayed.
func TestRestart(t *testing.T) {
	s := newScene(t, broker, keys, []string{"a", "b", "c"})
	s.flow(rate / 5)
	tasks, partitions := s.Status().Instance("c").Active, s.partitionsOf("c")

	since := time.Now()
	s.processes["c"].Signal(syscall.SIGTERM)
	if code := s.processes["c"].Wait(limit); code != 0 {
		t.Fatalf("SIGTERM: exit code %d", code)
	}
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("SIGTERM took %v, at most 5 s are promised", took)
	}
	sent := s.load.Sent()
	s.start("c")
	s.backWith(tasks, since)
	if n := s.replayed(tasks); n > s.load.Sent()-sent {
		t.Errorf("after SIGTERM %d records were replayed, more than have come since", n)
	}

	sent = s.load.Sent()
	harness.Until(t, limit, "there is a tail to replay", func() bool { return s.load.Sent() > sent+5000 })
	since = time.Now()
	s.processes["c"].Kill()
	s.start("c")
	s.backWith(tasks, since)
	n := s.replayed(tasks)
	t.Logf("after kill -9: %d records replayed of %d keys of state", n, s.load.Keys*len(tasks)/8)
	if n > s.load.Sent()-sent {
		t.Errorf("after kill -9 %d records were replayed, more than have come since the last start", n)
	}
	s.load.Stop()
	s.watch.AwaitComplete(s.load, limit, partitions...)
}

// backWith waits until c runs its tasks again and fails the test if another instance did meanwhile.
func (s *scene) backWith(tasks []string, since time.Time) {
	s.t.Helper()
	harness.Until(s.t, limit, "c runs its tasks again", func() bool {
		c := s.Status().Instance("c")
		return c.State == "running" && slices.Equal(c.Active, tasks) && len(s.restored(tasks, "c", since)) == len(tasks)
	})
	for _, other := range []string{"a", "b"} {
		if ran := s.restored(tasks, other, since); len(ran) > 0 {
			s.t.Errorf("%s ran tasks of c while that restarted: %v", other, ran)
		}
	}
}

// restored are the events of these tasks being opened to run by an instance since a time.
func (s *scene) restored(tasks []string, id string, since time.Time) []harness.Event {
	var found []harness.Event
	for _, e := range s.processes[id].Events() {
		if e.Msg == "restored" && !e.Time.Before(since) && slices.Contains(tasks, e.Text("task")) {
			found = append(found, e)
		}
	}
	return found
}

// replayed is the number of changelog records that c's newest process replayed, as its log says.
func (s *scene) replayed(tasks []string) int64 {
	s.t.Helper()
	var n int64
	for _, e := range s.restored(tasks, "c", time.Time{}) {
		n += int64(e.Number("records"))
		if local, _ := e.Fields["local"].(bool); !local {
			s.t.Errorf("task %s was restored without its local state", e.Text("task"))
		}
	}
	return n
}
