package command

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/streamworker/streamworker/pkg/config"
)

func TestSignalPolicy(t *testing.T) {
	term, ctrlC := os.Signal(syscall.SIGTERM), os.Signal(syscall.SIGINT)
	for _, c := range []struct {
		on      config.OnTerminate
		signals []os.Signal
		want    []reaction
	}{
		{config.Keep, []os.Signal{term, term, term}, []reaction{stopKeep, ignore, ignore}},
		{config.Release, []os.Signal{term, term}, []reaction{stopRelease, ignore}},
		{config.Drain, []os.Signal{term, term, term}, []reaction{drainFirst, stopRelease, stopRelease}},
		{config.Keep, []os.Signal{ctrlC, ctrlC}, []reaction{stopKeep, exitAtOnce}},
		{config.Release, []os.Signal{ctrlC, term, ctrlC}, []reaction{stopRelease, ignore, exitAtOnce}},
		{config.Drain, []os.Signal{ctrlC, ctrlC}, []reaction{drainFirst, exitAtOnce}},
		{config.Drain, []os.Signal{term, ctrlC, ctrlC}, []reaction{drainFirst, stopRelease, exitAtOnce}},
	} {
		p := signalPolicy{onTerminate: c.on}
		for i, s := range c.signals {
			if got := p.next(s); got != c.want[i] {
				t.Errorf("%s, signal %d of %v: reaction %d, want %d", c.on, i, c.signals, got, c.want[i])
			}
		}
	}
}

// A command that does not listen to signals is ended by them: it must not catch any.
func TestSignalsAreCaughtToBeHeard(t *testing.T) {
	good := write(t, "words.yaml", words)
	for line, want := range map[string]bool{
		"topology " + good: false, "test " + good: false, "test --input - " + good: false, "config check -c " + good: false, "simulate /nowhere": false,
		"probe live --state-dir /nowhere": false, "version": false,
		"status --state-dir /nowhere": true, "query --state-dir /nowhere": true, "leave --state-dir /nowhere": true, "stop --state-dir /nowhere": true, "reset": true,
	} {
		caught := false
		execute(strings.Fields(line), &env{out: io.Discard, errOut: io.Discard, in: strings.NewReader(""), lookup: os.LookupEnv, catch: func() { caught = true }})
		if caught != want {
			t.Errorf("%s: signals are caught: %t, want %t", line, caught, want)
		}
	}
}

// The first signal ends the context, the second one the process.
func TestInterruptible(t *testing.T) {
	signals, exited := make(chan os.Signal), make(chan int)
	e := &env{signals: signals, exit: func(code int) { exited <- code }}
	ctx, stop := e.interruptible(t.Context())
	signals <- os.Interrupt
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
		t.Error(cause)
	}
	signals <- os.Interrupt
	if code := <-exited; code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	stop()
}
