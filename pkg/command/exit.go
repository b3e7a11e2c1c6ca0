package command

import (
	"context"
	"errors"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/query"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Exit codes. exitCodesHelp is their documentation; a unit file must not restart on exitDrained,
// exitUndrained, exitSuperseded and exitChanged.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitConfig      = 3
	exitDrained     = 10
	exitUndrained   = 11
	exitSuperseded  = 12
	exitDirInUse    = 13
	exitState       = 14
	exitCancelled   = 15
	exitNotRunning  = 16
	exitNoKey       = 17
	exitChanged     = 18
	exitInterrupted = 130
)

const exitCodesHelp = `Exit codes of all commands:

    0  done; of run: stopped as asked
    1  failed: the message says why
    2  wrong usage: unknown command, flag or argument; a crash of the program ends with 2, too
    3  the configuration or scenario file has mistakes
   10  run: marked as leaving, every task was handed over, the group was left
   11  run: marked as leaving, left the group at the scale-down timeout or by --now with tasks not handed over
       leave --wait, swap, stop --how drain: an instance did so at its timeout
   12  run: another process was started under the same instance id
   13  run: another process uses the state directory
   14  run: the local state can no longer be written; a restart replays what is missing
   15  leave --wait, swap: the leave was cancelled
   16  leave, status, stop, probe, query: no instance is running on this host with this state directory
   17  query: nothing is stored for the key
   18  run: the topology was changed, and cannot go on from the stores, or beside the instances, that are there
  130  ended at once by a second Ctrl-C, or by Ctrl-C while waiting

A supervisor should restart run after 1, 2, 14 and signals, not after 0, 10, 11 and 12; 3, 13 and 18 need a human.`

var (
	// errUndrained is returned by leave --wait when an instance left with tasks not handed over.
	errUndrained = errors.New("left with tasks not handed over")
	// errWithdrawn is returned by leave --wait when a leave was cancelled.
	errWithdrawn = errors.New("the leave was cancelled")
	// errInterrupted is returned when Ctrl-C ends a command that waits.
	errInterrupted = errors.New("interrupted")
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode maps the error of a command to its exit code.
func exitCode(err error) int {
	var usage usageError
	var mistakes yamlnode.Problems
	var failure *query.Failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &mistakes):
		return exitConfig
	case errors.Is(err, leave.ErrDrained):
		return exitDrained
	case errors.Is(err, leave.ErrTimedOut), errors.Is(err, leave.ErrNow), errors.Is(err, errUndrained):
		return exitUndrained
	case errors.Is(err, instance.ErrSuperseded):
		return exitSuperseded
	case errors.Is(err, admin.ErrInUse), errors.Is(err, state.ErrDirInUse):
		return exitDirInUse
	case errors.Is(err, instance.ErrChanged):
		return exitChanged
	case errors.Is(err, instance.ErrState):
		return exitState
	case errors.Is(err, errWithdrawn):
		return exitCancelled
	case errors.Is(err, admin.ErrNotRunning):
		return exitNotRunning
	case errors.As(err, &failure) && failure.Code == query.CodeNoKey:
		return exitNoKey
	case errors.As(err, &failure) && failure.Code == query.CodeBadRequest:
		return exitUsage
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}
