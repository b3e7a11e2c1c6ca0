package command

import (
	"os"
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
