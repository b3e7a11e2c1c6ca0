package command

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
)

// onHost is an instance with a socket, that can vanish.
type onHost struct {
	mu      sync.Mutex
	status  control.Status
	orders  []leave.Deadline
	stops   []string // how
	cancels int
	marked  func()
}

func (o *onHost) Status() control.Status { o.mu.Lock(); defer o.mu.Unlock(); return o.status }

func (o *onHost) Live() bool { return true }

func (o *onHost) Ready() bool { return o.Status().Generation > 0 }

func (o *onHost) Leave(_ context.Context, d leave.Deadline, _ string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.orders = append(o.orders, d)
	if o.marked != nil {
		go o.marked()
	}
	return nil
}

func (o *onHost) Cancel(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancels++
	return nil
}

func (o *onHost) stop(_ context.Context, s admin.StopOrder) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = append(o.stops, s.How)
	if o.marked != nil {
		go o.marked()
	}
	return nil
}

func (o *onHost) serve(t *testing.T) (dir string, vanish func()) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "swc") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	l, err := admin.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := admin.NewServer(admin.Config{App: "words", Instance: o, Stop: o.stop, Logger: slog.New(slog.DiscardHandler)}).ServeLocal(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	vanish = func() { stop(); <-done }
	t.Cleanup(func() { vanish(); _ = os.RemoveAll(dir) })
	return dir, vanish
}

func TestOnTheHost(t *testing.T) {
	o := &onHost{status: control.Status{Instance: "a", Incarnation: incarnation, State: control.Running, Generation: 4, Active: []string{"0_0"}}}
	dir, _ := o.serve(t)
	var s shell
	if code := s.run(t, "status", "--state-dir", dir); code != exitOK || !strings.Contains(s.stdout, "words: 1 instance, 1 task, generation 4") {
		t.Errorf("status: %d %q %s", code, s.stdout, s.stderr)
	}
	for _, args := range [][]string{{}, {"--now"}, {"--timeout", "none"}} {
		if code := s.run(t, append([]string{"leave", "--state-dir", dir}, args...)...); code != exitOK || s.stdout != "a: marked as leaving\n" {
			t.Errorf("leave %s: %d %q %s", args, code, s.stdout, s.stderr)
		}
	}
	if len(o.orders) != 3 || o.orders[0] != leave.Default || o.orders[1] != leave.Now || o.orders[2] != leave.Never {
		t.Errorf("orders %v", o.orders)
	}
	if code := s.run(t, "leave", "--state-dir", dir, "--cancel"); code != exitOK || s.stdout != "a: cancelled\n" || o.cancels != 1 {
		t.Errorf("cancel: %d %q %s", code, s.stdout, s.stderr)
	}
}

// The process may be gone before its last status was asked for: its state directory tells how it ended.
func TestWaitOnTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		left string
		code int
	}{
		"drained":   {"drained", exitOK},
		"timed out": {"timeout", exitUndrained},
		"killed":    {"", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			o := &onHost{status: control.Status{Instance: "a", Incarnation: incarnation, State: control.Running, Active: []string{"0_0"}}}
			dir, vanish := o.serve(t)
			o.marked = func() {
				o.mu.Lock()
				o.status.State = control.Draining
				o.mu.Unlock()
				time.Sleep(2 * waitInterval)
				rec := `{"v":1,"incarnation":"` + incarnation.String() + `","order":{"deadline":"none"},"left":"` + c.left + `"}`
				if err := os.WriteFile(filepath.Join(dir, leave.JournalFile), []byte(rec), 0o600); err != nil {
					t.Error(err)
				}
				vanish()
			}
			var s shell
			if code := s.run(t, "leave", "--state-dir", dir, "--wait"); code != c.code {
				t.Errorf("exit code %d, want %d: %q %s", code, c.code, s.stdout, s.stderr)
			}
		})
	}
}
