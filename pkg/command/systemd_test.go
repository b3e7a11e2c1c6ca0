package command

import (
	"log/slog"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// What systemd hears in the life of an instance.
func TestNotifier(t *testing.T) {
	var said []string
	n := newNotifier(slog.New(slog.DiscardHandler))
	n.send = func(state string) (bool, error) { said = append(said, state); return true, nil }
	expect := func(when, want string) {
		t.Helper()
		got := ""
		if len(said) > 0 {
			got = said[0]
		}
		if len(said) > 1 || got != want {
			t.Errorf("%s: %q, want %q", when, said, want)
		}
		said = nil
	}
	running := control.Status{State: control.Running, Active: []string{"0_0", "0_1"}}
	draining := running
	draining.State = control.Draining

	n.observe(observed{status: control.Status{State: control.Starting}, live: true})
	expect("starting", "STATUS=starting: no lease of the group yet\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000")
	n.observe(observed{status: running, live: true})
	expect("restoring", "STATUS=running: 2 active (not ready)\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000")
	n.observe(observed{status: running, live: true, ready: true})
	expect("ready", "READY=1\nSTATUS=running: 2 active\nWATCHDOG=1")
	n.observe(observed{status: running, live: true, ready: true})
	expect("nothing new", "WATCHDOG=1")
	n.observe(observed{status: running})
	expect("hanging", "STATUS=running; the task manager hangs: 2 active (not ready)")
	n.observe(observed{status: running})
	expect("hanging on", "")
	n.observe(observed{status: draining, live: true, ready: true})
	expect("marked as leaving", "STATUS=draining: 2 active\nWATCHDOG=1")
	n.stops()
	expect("told to stop", "STOPPING=1")
	n.observe(observed{status: draining, live: true, ready: true})
	expect("draining before it stops", "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000")
	n.stops()
	expect("told once more", "")
	n.observe(observed{status: control.Status{State: control.Stopping}, live: true})
	expect("stopping", "STATUS=stopping\nWATCHDOG=1")
}

func TestNotifyInterval(t *testing.T) {
	n := newNotifier(slog.New(slog.DiscardHandler))
	for usec, want := range map[string]time.Duration{"": time.Second, "60000000": time.Second, "500000": 250 * time.Millisecond, "soon": time.Second} {
		t.Setenv("WATCHDOG_USEC", usec)
		if got := n.interval(); got != want {
			t.Errorf("WATCHDOG_USEC=%s: looks every %s, want %s", usec, got, want)
		}
	}
}
