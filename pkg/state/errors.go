package state

import "errors"

var (
	// ErrClosed is returned by calls on a DB or an Engine that has been closed.
	ErrClosed = errors.New("state: closed")

	// ErrDirInUse is returned by NewEngine when another process holds the state directory.
	ErrDirInUse = errors.New("state: directory in use")

	// ErrOpen is returned when a task's state is to be opened or removed while it is open.
	ErrOpen = errors.New("state: task is open")

	// ErrCorrupt is returned by reads and writes of a task whose state on disk was found damaged. Close
	// the DB: that sets the state aside, and the next Open starts empty.
	ErrCorrupt = errors.New("state: corrupt")

	// ErrRedefined is returned by Open when a store's rows on disk are of another definition than is asked for.
	ErrRedefined = errors.New("state: store has another definition")

	// ErrDiscarded is returned by Apply for changes that Discard or Reset has dropped.
	ErrDiscarded = errors.New("state: changes were discarded")

	// ErrStale is returned by ApplyChangelog for a store that was at its changelog's end longer ago than tombstones last: those of
	// keys that it has may be gone. The store has to start anew.
	ErrStale = errors.New("state: the store was not read on for longer than tombstones last")

	// ErrOutOfRange is delivered by a Reader when the position asked for is outside the log: the
	// changelog was truncated above it, or ends below it. The store has to start anew.
	ErrOutOfRange = errors.New("state: position is out of the changelog's range")

	// ErrTopicChanged is delivered by a Reader when the changelog was deleted and created anew while it
	// was read: positions in the old topic mean nothing in the new one.
	ErrTopicChanged = errors.New("state: changelog topic was created anew")
)
