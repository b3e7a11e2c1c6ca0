package leave

import "errors"

var (
	// ErrDrained is returned by Controller.Run when every task was handed over and the group was left.
	ErrDrained = errors.New("drained: every task was handed over and the group was left")
	// ErrTimedOut is returned by Controller.Run when the deadline passed and the group was left with tasks
	// not handed over; the other instances take them as after a failure.
	ErrTimedOut = errors.New("left the group at the scale-down deadline with tasks not handed over")
	// ErrNow is returned by Controller.Run when a mark asked to give everything up at once.
	ErrNow = errors.New("left the group at once, as asked, with tasks not handed over")
	// ErrDone is returned by Controller.Cancel and Controller.Leave when the instance has already left
	// or is past the point of return.
	ErrDone = errors.New("the instance is already drained and leaves")
)
