package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/swap"
)

// pools are an old pool of a and b, and a new one of c, which is just starting.
func pools(t *testing.T) *application {
	t.Helper()
	a := newApplication(t)
	a.putIn(t, "a", control.Running, "blue", "0_0")
	a.putIn(t, "b", control.Running, "blue", "0_1")
	a.putIn(t, "c", control.Starting, "green")
	return a
}

func (a *application) putIn(t *testing.T, instance string, state control.State, pool string, active ...string) {
	t.Helper()
	a.put(t, instance, state, func(s *control.Status) {
		s.Labels, s.Active, s.Capacity = map[string]string{"pool": pool}, active, 1
		if pool == "green" {
			s.Capacity = 2
		}
		if state == control.Drained {
			s.Left = control.LeftDrained
		}
	})
}

// marked are the swaps of the marks in force, by instance.
func (a *application) marked(t *testing.T) map[string]string {
	t.Helper()
	list, err := a.bus.ReadMarks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]string)
	for _, mark := range list {
		m[mark.Instance] = mark.Swap
	}
	return m
}

func (a *application) swap(more ...string) []string {
	return a.flags(append([]string{"swap", "--from", "pool=blue", "--to", "pool=green"}, more...)...)
}

const blueToGreen = "pool=blue -> pool=green"

// later calls f while the test goes on, and is done before it ends.
func later(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(3 * waitInterval)
		f()
	}()
	t.Cleanup(func() { <-done })
}

func TestSwap(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			a := pools(t)
			later(t, func() { a.putIn(t, "c", control.Running, "green") })
			for instance, task := range map[string]string{"a": "0_0", "b": "0_1"} {
				a.obey(t, instance, func() {
					a.putIn(t, instance, control.Draining, "blue", task)
					time.Sleep(2 * waitInterval)
					if instance == "a" {
						a.putIn(t, "c", control.Running, "green", "0_0", "0_1")
					}
					a.putIn(t, instance, control.Drained, "blue")
				})
			}
			var s shell
			if code := s.run(t, a.swap("-o", format)...); code != exitOK {
				t.Fatalf("exit code %d: %q %s", code, s.stdout, s.stderr)
			}
			if m := a.marked(t); len(m) != 2 || m["a"] != blueToGreen || m["b"] != blueToGreen {
				t.Errorf("marks %v", m)
			}
			if format == "json" {
				checkSwapLines(t, s.stdout)
				return
			}
			if want := "a: drained\nb: drained\n"; s.stdout != want {
				t.Errorf("%q, want %q", s.stdout, want)
			}
			for _, want := range []string{
				"waiting for pool=green: 0 running, 1 starting, capacity 0 of the 2 that pool=blue has\n",
				blueToGreen + ": 0 of 2 tasks moved", "a: 1 task left: 0_0", "b: drained",
			} {
				if !strings.Contains(s.stderr, want) {
					t.Errorf("no %q in %q", want, s.stderr)
				}
			}
		})
	}
}

func checkSwapLines(t *testing.T, out string) {
	t.Helper()
	var lines []swapLine
	for line := range strings.Lines(out) {
		var l swapLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, l)
	}
	if len(lines) < 3 {
		t.Fatalf("only %d lines: %s", len(lines), out)
	}
	if l := lines[0]; l.Phase != swap.Waiting || l.Wait == "" || l.New != (swap.Pool{Starting: 1, Wanted: 2, Min: 1}) || l.App != "words" || l.From != "pool=blue" {
		t.Errorf("first: %+v", l)
	}
	if l := lines[1]; l.Phase != swap.Draining || len(l.Instances) != 2 || l.Instances[0].Tasks[0] != "0_0" || l.Tasks != 2 || l.SecondsLeft != nil {
		t.Errorf("second: %+v", l)
	}
	if l := lines[len(lines)-1]; l.Phase != swap.Ended || l.Instances[1].Outcome != "drained" || len(l.Instances[1].Tasks) != 0 {
		t.Errorf("last: %+v", l)
	}
}

// Interrupted while it waits, a swap has not begun; interrupted later it goes on, and is resumed by the same command.
func TestSwapIsInterruptedAndResumed(t *testing.T) {
	a := pools(t)
	s := shell{signals: make(chan os.Signal, 1)}
	s.signals <- os.Interrupt
	if code := s.run(t, a.swap()...); code != exitInterrupted || !strings.Contains(s.stderr, "the swap has not begun") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if code := s.run(t, a.swap("--wait-limit", "1ms")...); code != exitError || !strings.Contains(s.stderr, "after 1ms: pool=green: 0 running") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if m := a.marked(t); len(m) != 0 {
		t.Errorf("marks %v", m)
	}

	a.putIn(t, "c", control.Running, "green")
	a.obey(t, "a", func() {
		a.putIn(t, "a", control.Draining, "blue", "0_0")
		s.signals <- os.Interrupt
	})
	if code := s.run(t, a.swap()...); code != exitInterrupted || !strings.Contains(s.stderr, "the swap goes on without this command") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if m := a.marked(t); len(m) != 2 {
		t.Errorf("marks %v", m)
	}

	// Elsewhere, with the new pool gone: the swap has begun, so nothing is waited for.
	a.put(t, "c", control.Stopping, func(s *control.Status) { s.Left = control.LeftNow })
	later(t, func() {
		a.putIn(t, "a", control.Drained, "blue")
		a.putIn(t, "b", control.Drained, "blue")
	})
	resumed := shell{}
	if code := resumed.run(t, a.swap()...); code != exitOK || resumed.stdout != "a: drained\nb: drained\n" {
		t.Errorf("exit code %d: %q %s", code, resumed.stdout, resumed.stderr)
	}
	// It has ended: the same command says so.
	if code := resumed.run(t, a.swap()...); code != exitOK || resumed.stdout != "a: drained\nb: drained\n" {
		t.Errorf("exit code %d: %q %s", code, resumed.stdout, resumed.stderr)
	}
}

// Any machine takes it back; the command that follows it learns of that.
func TestSwapIsCancelled(t *testing.T) {
	a := pools(t)
	a.putIn(t, "c", control.Running, "green")
	var other shell
	a.obey(t, "b", func() {
		a.putIn(t, "a", control.Draining, "blue", "0_0")
		a.putIn(t, "b", control.Draining, "blue", "0_1")
		time.Sleep(2 * waitInterval)
		if code := other.run(t, a.flags("swap", "--from", "pool=blue", "--cancel")...); code != exitOK || other.stdout != "a: cancelled\nb: cancelled\n" {
			t.Errorf("exit code %d: %q %s", code, other.stdout, other.stderr)
		}
		a.putIn(t, "a", control.Running, "blue", "0_0")
		a.putIn(t, "b", control.Running, "blue", "0_1")
	})
	var s shell
	if code := s.run(t, a.swap()...); code != exitCancelled || s.stdout != "a: cancelled\nb: cancelled\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if m := a.marked(t); len(m) != 0 {
		t.Errorf("marks %v", m)
	}
	if code := s.run(t, a.flags("swap", "--from", "pool=blue", "--cancel", "-o", "json")...); code != exitOK ||
		s.stdout != `{"instances":[{"id":"a","outcome":"was not leaving"},{"id":"b","outcome":"was not leaving"}]}`+"\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
}

func TestSwapRefuses(t *testing.T) {
	a := pools(t)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"swap --to pool=green", "--from label=value", exitUsage},
		{"swap --from pool=blue", "--to label=value", exitUsage},
		{"swap --from blue --to pool=green", "--from: selector", exitUsage},
		{"swap --from pool=blue,zone=a --to zone=a,pool=blue", "--from and --to are the same", exitUsage},
		{"swap --from pool=blue --to pool=green --timeout soon", "--timeout soon", exitUsage},
		{"swap --from pool=blue --cancel --min 2", "--cancel goes with", exitUsage},
		{"swap --from pool=red --to pool=green", "nothing matches pool=red; running are a (pool=blue), b (pool=blue), c (pool=green)", exitError},
		{"swap --from pool=red --cancel", "there is nothing to cancel", exitError},
	} {
		var s shell
		if code := s.run(t, a.flags(strings.Fields(c.line)...)...); code != c.code || !strings.Contains(s.stderr, c.want) {
			t.Errorf("%s: exit code %d, want %d with %q: %s", c.line, code, c.code, c.want, s.stderr)
		}
	}
	a.put(t, "d", control.Running, func(s *control.Status) { s.Labels = map[string]string{"pool": "blue", "zone": "z"} })
	var s shell
	if code := s.run(t, a.flags("swap", "--from", "pool=blue", "--to", "zone=z")...); code != exitError || !strings.Contains(s.stderr, "d matches both pool=blue and zone=z") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if code := s.run(t, "swap", "--from", "pool=blue", "--to", "pool=green"); code != exitUsage {
		t.Errorf("nowhere: exit code %d: %s", code, s.stderr)
	}
	if m := a.marked(t); len(m) != 0 {
		t.Errorf("marks %v", m)
	}
}

// A selector that leaves nobody is refused, unless it is asked for in words.
func TestLeaveOfEverybody(t *testing.T) {
	a := pools(t)
	a.putIn(t, "c", control.Draining, "green")
	var s shell
	refused := func(line ...string) {
		t.Helper()
		if code := s.run(t, a.flags(line...)...); code != exitError || !strings.Contains(s.stderr, "leaves no instance to take the tasks: a, b would all be leaving") {
			t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
		}
		if m := a.marked(t); len(m) != 0 {
			t.Errorf("marks %v", m)
		}
	}
	refused("leave", "--selector", "pool=blue")
	refused("leave", "--selector", "pool=blue", "--now")
	if code := s.run(t, a.flags("leave", "--selector", "pool=blue", "--all")...); code != exitOK || len(a.marked(t)) != 2 {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, a.flags("leave", "--selector", "pool=blue", "--cancel")...); code != exitOK || len(a.marked(t)) != 0 {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, a.flags("leave", "--instance", "a", "--all")...); code != exitUsage || !strings.Contains(s.stderr, "--all goes with --selector") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}
