package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
)

// The state directory tells how the instance ended that was told to stop.
func TestStop(t *testing.T) {
	for name, c := range map[string]struct {
		how, left string
		code      int
		want      string
	}{
		"kept":       {"keep", "", exitOK, `{"instances":[{"id":"a","outcome":"stopped"}]}`},
		"drained":    {"drain", "drained", exitOK, "a: drained"},
		"timed out":  {"drain", "timeout", exitUndrained, "left with tasks not handed over"},
		"by default": {"", "", exitOK, "a: stopping, which takes 5s at most"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &onHost{status: control.Status{Instance: "a", Incarnation: incarnation, State: control.Running, Active: []string{"0_0", "0_1"}}}
			dir, vanish := o.serve(t)
			o.marked = func() {
				o.mu.Lock()
				if o.status.State = control.Stopping; c.how == "drain" {
					o.status.State, o.status.DeadlineMs = control.Draining, time.Now().Add(time.Hour).UnixMilli()
				}
				o.mu.Unlock()
				time.Sleep(2 * waitInterval)
				if c.left != "" {
					rec := `{"v":1,"incarnation":"` + incarnation.String() + `","order":{"deadline":"none"},"left":"` + c.left + `"}`
					if err := os.WriteFile(filepath.Join(dir, leave.JournalFile), []byte(rec), 0o600); err != nil {
						t.Error(err)
					}
				}
				vanish()
			}
			var s shell
			args := []string{"stop", "--state-dir", dir}
			if c.how != "" {
				args = append(args, "--how", c.how)
			}
			if c.how == "keep" {
				args = append(args, "-o", "json")
			}
			code := s.run(t, args...)
			if code != c.code || !strings.Contains(s.stdout+s.stderr, c.want) {
				t.Errorf("exit code %d, want %d: %q %s", code, c.code, s.stdout, s.stderr)
			}
			if len(o.stops) != 1 || o.stops[0] != c.how {
				t.Errorf("orders %v", o.stops)
			}
			if c.how == "drain" && (!strings.Contains(s.stderr, "a: 2 tasks left") || !strings.Contains(s.stderr, ", until ")) {
				t.Errorf("progress: %q", s.stderr)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	o := &onHost{status: control.Status{Instance: "a", State: control.Starting}}
	dir, _ := o.serve(t)
	var s shell
	if code := s.run(t, "probe", "live", "--state-dir", dir); code != exitOK || s.stdout != "ok\n" {
		t.Errorf("live: %d %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, "probe", "ready", "--state-dir", dir); code != exitError || !strings.Contains(s.stderr, "not ready: starting") {
		t.Errorf("ready: %d %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, "probe", "live", "--state-dir", dir, "-o", "json"); code != exitOK || s.stdout != `{"ok":true}`+"\n" {
		t.Errorf("live as JSON: %d %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, "probe", "ready", "--state-dir", dir, "-o", "json"); code != exitError || !strings.HasPrefix(s.stdout, `{"ok":false,"error":"`) {
		t.Errorf("ready as JSON: %d %q %s", code, s.stdout, s.stderr)
	}
}
