package leave

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every script in testdata/controller drives a controller in virtual time and prints what it logs and
// what it asks of the instance.
func TestController(t *testing.T) {
	files, err := filepath.Glob("testdata/controller/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{dir: t.TempDir(), bus: true}
				defer w.kill()
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					w.do(t, d)
					synctest.Wait()
					return w.takeOutput()
				})
			})
		})
	}
}

// world is an instance around a controller. It is its Member, its Tasks and its Marks.
type world struct {
	dir  string
	ctl  *Controller
	stop context.CancelFunc
	done chan struct{}
	runs int // starts so far; also the random bits of incarnations

	mu        sync.Mutex
	out       bytes.Buffer
	remaining int
	settled   bool
	bus       bool // the control topic answers
}

func (w *world) do(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "run": // timeout=<duration>
		timeout := time.Duration(0)
		if d.HasArg("timeout") {
			timeout = argDuration(t, d, "timeout")
		}
		w.run(t, timeout)
	case "kill":
		w.kill()
	case "mark": // [deadline=none|now|<duration from now>] [incarnation=older|newer] [by=<name>]
		w.ctl.Mark(Mark{Incarnation: w.named(d), Deadline: argDeadline(t, d), By: argString(t, d, "by", "ops")})
	case "cancel": // [incarnation=older|newer]
		w.ctl.Cancelled(w.named(d))
	case "local-leave": // [deadline=...]
		w.answer(w.ctl.Leave(t.Context(), argDeadline(t, d), "local"))
	case "local-cancel":
		w.answer(w.ctl.Cancel(t.Context()))
	case "sigterm":
		w.ctl.Drain("SIGTERM")
	case "tasks": // remaining=<n> [settled]
		w.mu.Lock()
		d.ScanArgs(t, "remaining", &w.remaining)
		w.settled = d.HasArg("settled")
		w.mu.Unlock()
		time.Sleep(time.Second)
	case "bus": // up or down
		w.mu.Lock()
		w.bus = d.HasArg("up")
		w.mu.Unlock()
	case "advance":
		time.Sleep(parseDuration(t, d.CmdArgs[0].Key))
	case "view":
		v := w.ctl.Snapshot()
		w.say("%s, deadline %s, by %q", v.Phase, v.Deadline, v.By)
	case "record":
		rec, err := ReadRecord(w.dir)
		if err != nil {
			w.say("no record")
			break
		}
		w.say("deadline %s, starts %d, left %q", rec.Order.Deadline, rec.Incarnation.Starts, rec.Left)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
}

// answer comes after what the request has led to, which another goroutine does.
func (w *world) answer(err error) {
	synctest.Wait()
	w.say("answer: %v", err)
}

func (w *world) run(t *testing.T, timeout time.Duration) {
	logger := slog.New(slog.NewTextHandler(writerFunc(w.write), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "component":
			return slog.Attr{}
		}
		return a
	}}))
	w.runs++
	j, err := OpenJournal(w.dir, time.Now(), uint64(w.runs), logger)
	if err != nil {
		t.Fatal(err)
	}
	w.ctl = NewController(Config{Journal: j, Timeout: timeout, Member: w, Tasks: w, Marks: w, Logger: logger})
	ctx, stop := context.WithCancel(t.Context())
	w.stop, w.done = stop, make(chan struct{})
	go func() {
		defer close(w.done)
		if err := w.ctl.Run(ctx); err != nil {
			w.say("run returned: %v", err)
		}
	}()
}

func (w *world) kill() {
	if w.stop != nil {
		w.stop()
		<-w.done
	}
}

func (w *world) named(d *datadriven.TestData) assign.Incarnation {
	inc := w.ctl.cfg.Journal.Incarnation()
	switch {
	case argIs(d, "incarnation", "older"):
		inc.StartMs--
	case argIs(d, "incarnation", "newer"):
		inc.StartMs++
	}
	return inc
}

func (w *world) SetLeaving(deadlineMs int64) {
	if deadlineMs == 0 {
		w.say("group: leaving, no deadline")
		return
	}
	w.say("group: leaving, deadline %s", At(time.UnixMilli(deadlineMs)))
}

func (w *world) ClearLeaving() { w.say("group: staying") }

func (w *world) Leave(context.Context) error { w.say("group: LeaveGroup"); return nil }

func (w *world) Remaining() int { w.mu.Lock(); defer w.mu.Unlock(); return w.remaining }

func (w *world) Settled() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.settled }

func (w *world) GiveUp(context.Context) error { w.say("tasks: stop and commit"); return nil }

func (w *world) Put(_ context.Context, m Mark) error {
	if !w.busUp() {
		return errors.New("Kafka does not answer")
	}
	w.say("bus: mark, deadline %s", m.Deadline)
	w.ctl.Mark(m)
	return nil
}

// Clear gives the tombstone back as the tail of the control topic would.
func (w *world) Clear(context.Context) error {
	if !w.busUp() {
		return errors.New("Kafka does not answer")
	}
	w.say("bus: mark removed")
	w.ctl.Cancelled(w.ctl.cfg.Journal.Incarnation())
	return nil
}

func (w *world) busUp() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.bus }

func (w *world) say(format string, args ...any) { w.write(fmt.Appendf(nil, format+"\n", args...)) }

func (w *world) write(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(p)
}

func (w *world) takeOutput() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.out.String()
	w.out.Reset()
	return s
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func argString(t *testing.T, d *datadriven.TestData, key, value string) string {
	d.MaybeScanArgs(t, key, &value)
	return value
}

func argIs(d *datadriven.TestData, key, want string) bool {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, "") == want
		}
	}
	return false
}

func argDuration(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	return parseDuration(t, argString(t, d, key, "0s"))
}

func argDeadline(t *testing.T, d *datadriven.TestData) Deadline {
	s := argString(t, d, "deadline", "default")
	var dl Deadline
	if dl.UnmarshalText([]byte(s)) == nil {
		return dl
	}
	return At(time.Now().Add(parseDuration(t, s)))
}
