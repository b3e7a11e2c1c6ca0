package command

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

func TestLeaveFromAnywhere(t *testing.T) {
	a := newApplication(t)
	blue := func(s *control.Status) { s.Labels = map[string]string{"pool": "blue"} }
	a.put(t, "a", control.Running, blue)
	a.put(t, "b", control.Running, blue)
	a.put(t, "c", control.Running, nil)
	marks := func() map[string]control.Mark {
		t.Helper()
		list, err := a.bus.ReadMarks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := make(map[string]control.Mark)
		for _, mark := range list {
			m[mark.Instance] = mark
		}
		return m
	}
	var s shell
	if code := s.run(t, a.flags("leave", "--selector", "pool=blue")...); code != exitOK || s.stdout != "a: marked as leaving\nb: marked as leaving\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if m := marks(); len(m) != 2 || m["a"].Incarnation != incarnation || m["a"].DeadlineMs != 0 || m["a"].Now || m["a"].By == "" {
		t.Errorf("marks %+v", m)
	}
	if code := s.run(t, a.flags("leave", "--instance", "a", "--timeout", "1h", "-o", "json")...); code != exitOK ||
		s.stdout != `{"instances":[{"id":"a","outcome":"marked as leaving"}]}`+"\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if at := time.UnixMilli(marks()["a"].DeadlineMs); time.Until(at) > time.Hour || time.Until(at) < 30*time.Minute {
		t.Errorf("deadline %s", at)
	}
	if code := s.run(t, a.flags("leave", "--instance", "b", "--cancel")...); code != exitOK || s.stdout != "b: cancelled\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, a.flags("leave", "--instance", "c", "--timeout", "none")...); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if m := marks(); len(m) != 2 || m["c"].DeadlineMs != control.NoDeadline {
		t.Errorf("marks %+v", m)
	}
	if code := s.run(t, a.flags("leave", "--instance", "x")...); code != exitError || !strings.Contains(s.stderr, "application words: no instance x: running are a, b, c") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}

// obey plays an instance that goes through states when it is marked.
func (a *application) obey(t *testing.T, instance string, then func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.bus.Run(ctx, control.Handler{Mark: func(m control.Mark) {
			if m.Instance == instance {
				then()
			}
		}})
	}()
	t.Cleanup(func() { stop(); <-done })
}

func TestLeaveAndWait(t *testing.T) {
	active := func(tasks ...string) func(*control.Status) {
		return func(s *control.Status) { s.Active = tasks }
	}
	left := func(why string) func(*control.Status) {
		return func(s *control.Status) { s.Left = why }
	}
	for name, c := range map[string]struct {
		args   []string
		then   func(*testing.T, *application)
		code   int
		stdout string
		stderr []string
	}{
		"drained": {
			then: func(t *testing.T, a *application) {
				a.put(t, "a", control.Draining, active("0_0"))
				time.Sleep(2 * waitInterval)
				a.put(t, "a", control.Drained, left(control.LeftDrained))
			},
			code: exitOK, stdout: "a: drained\n", stderr: []string{"a: 1 task left: 0_0 (learned by b)", "a: drained"},
		},
		"timed out": {
			then: func(t *testing.T, a *application) { a.put(t, "a", control.Stopping, left(control.LeftTimeout)) },
			code: exitUndrained, stdout: "a: left with tasks not handed over\n", stderr: []string{"restore them"},
		},
		"given up as asked": {
			args: []string{"--now"},
			then: func(t *testing.T, a *application) { a.put(t, "a", control.Stopping, left(control.LeftNow)) },
			code: exitOK, stdout: "a: left with tasks not handed over\n",
		},
		"cancelled": {
			then: func(t *testing.T, a *application) {
				a.put(t, "a", control.Draining, active("0_0"))
				time.Sleep(2 * waitInterval)
				a.put(t, "a", control.Running, active("0_0"))
			},
			code: exitCancelled, stdout: "a: cancelled\n", stderr: []string{"the leave was cancelled"},
		},
		"all are leaving": {
			then: func(t *testing.T, a *application) {
				a.put(t, "b", control.Draining, nil)
				a.put(t, "a", control.Draining, active("0_0"))
				time.Sleep(3 * waitInterval)
				a.put(t, "a", control.Stopping, left(control.LeftTimeout))
			},
			code: exitUndrained, stdout: "a: left with tasks not handed over\n", stderr: []string{allLeaving},
		},
		"replaced by another run": {
			then: func(t *testing.T, a *application) {
				a.put(t, "a", control.Running, func(s *control.Status) { s.Incarnation.StartMs++ })
			},
			code: exitError, stdout: "a: gone before it was drained\n", stderr: []string{"as after a failure"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t)
			a.put(t, "a", control.Running, active("0_0"))
			a.put(t, "b", control.Running, func(s *control.Status) { s.Learning = []control.Learning{{Task: "0_0", Lag: 9}} })
			a.obey(t, "a", func() { c.then(t, a) })
			var s shell
			code := s.run(t, a.flags(append([]string{"leave", "--instance", "a", "--wait"}, c.args...)...)...)
			if code != c.code || s.stdout != c.stdout {
				t.Errorf("exit code %d, want %d; %q, want %q; %s", code, c.code, s.stdout, c.stdout, s.stderr)
			}
			for _, w := range c.stderr {
				if !strings.Contains(s.stderr, w) {
					t.Errorf("no %q in %q", w, s.stderr)
				}
			}
		})
	}
}

func TestWaitEndsByCtrlC(t *testing.T) {
	a := newApplication(t)
	a.put(t, "a", control.Running, nil)
	s := shell{signals: make(chan os.Signal, 1)}
	a.obey(t, "a", func() { s.signals <- os.Interrupt })
	if code := s.run(t, a.flags("leave", "--instance", "a", "--wait")...); code != exitInterrupted || !strings.Contains(s.stderr, "go on leaving") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}
