package command

import (
	"os"
	"syscall"

	"github.com/streamworker/streamworker/pkg/config"
)

// reaction is what a running instance does on a signal.
type reaction uint8

const (
	ignore      reaction = iota
	stopKeep             // commit and stay a member of the group
	stopRelease          // commit and leave the group
	drainFirst           // hand the tasks over, then leave the group
	exitAtOnce
)

// signalPolicy says how signals add up. SIGTERM and the first Ctrl-C do what on_terminate says; one more
// while draining stops as release does; a second Ctrl-C exits at once.
type signalPolicy struct {
	onTerminate config.OnTerminate
	seen        int // signals
	interrupts  int // SIGINT among them
}

func (p *signalPolicy) next(s os.Signal) reaction {
	p.seen++
	if s == syscall.SIGINT {
		p.interrupts++
	}
	switch {
	case p.interrupts > 1:
		return exitAtOnce
	case p.seen > 1 && p.onTerminate == config.Drain:
		return stopRelease
	case p.seen > 1:
		return ignore
	case p.onTerminate == config.Keep:
		return stopKeep
	case p.onTerminate == config.Drain:
		return drainFirst
	}
	return stopRelease
}
