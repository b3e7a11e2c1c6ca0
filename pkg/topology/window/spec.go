package window

import (
	"fmt"
	"math"
	"time"
)

// Kind is a kind of window.
type Kind uint8

// The kinds.
const (
	Tumbling Kind = iota
	Hopping
	Sliding
	Session
	Custom // of whatever bounds; a row's key has both
)

var kindNames = []string{"tumbling", "hopping", "sliding", "session", "custom"}

func (k Kind) String() string { return kindNames[k] }

// Names are those of the kinds that aggregates have.
func Names() []string { return append([]string(nil), kindNames[:Custom]...) }

// Spec defines windows.
type Spec struct {
	Kind    Kind
	Size    int64 // of a session: the gap; of sliding windows: the difference between their bounds
	Advance int64 // of tumbling and hopping windows: from one start to the next
	Grace   int64 // records are taken so long after the end
	Retain  int64 // rows are kept at least so long after the window is closed
}

func (s Spec) String() string {
	if s.Kind == Custom {
		return s.Kind.String()
	}
	text := s.Kind.String() + " " + ms(s.Size)
	if s.Kind == Hopping {
		text += " every " + ms(s.Advance)
	}
	if s.Grace > 0 {
		text += ", grace " + ms(s.Grace)
	}
	return text
}

func ms(n int64) string { return (time.Duration(n) * time.Millisecond).String() }

// Bounds are those of one window.
type Bounds struct{ Start, End int64 }

func (b Bounds) String() string { return fmt.Sprintf("[%d,%d]", b.Start, b.End) }

// FirstStart is the start of the earliest tumbling or hopping window that holds ts; the others follow by Advance, up to ts.
func (s Spec) FirstStart(ts int64) int64 {
	return max(0, ts-s.Size+s.Advance) / s.Advance * s.Advance
}

// End is that of a tumbling, hopping or sliding window.
func (s Spec) End(start int64) int64 { return start + s.Size }

// Closed tells whether a window with this end takes no more records at a stream time.
func (s Spec) Closed(end, streamTime int64) bool {
	switch s.Kind {
	case Tumbling, Hopping:
		return end+s.Grace <= streamTime
	case Sliding:
		return end+s.Grace < streamTime
	default:
		return end+s.Size+s.Grace < streamTime
	}
}

// LastClosed is the largest end of a window that is closed at a stream time; it may be negative.
func (s Spec) LastClosed(streamTime int64) int64 {
	switch s.Kind {
	case Tumbling, Hopping:
		return streamTime - s.Grace
	case Sliding:
		return streamTime - s.Grace - 1
	default:
		return streamTime - s.Grace - s.Size - 1
	}
}

// Expiry is the largest end of a window whose row is of no use any more at a stream time. A closed sliding window is still
// needed to tell what a late record has before it.
func (s Spec) Expiry(streamTime int64) int64 {
	end := s.LastClosed(streamTime)
	if s.Kind == Sliding {
		end -= 2*s.Size + 1
	}
	return end - s.Retain
}

// Bounds within which no sum of times overflows, in ms.
const (
	MaxSize = 100 * 365 * 24 * int64(time.Hour/time.Millisecond) // of sizes, graces and retention: a hundred years
	MaxTime = math.MaxInt64 / 2                                  // of timestamps
)

// MaxOverlap bounds how many hopping windows a record may be in: each is a row to be written.
const MaxOverlap = 100_000

// CheckTime reports a timestamp that windows and joins cannot take.
func CheckTime(ts int64) error {
	switch {
	case ts < 0:
		return fmt.Errorf("timestamp %d is before 1970: windows and joins begin there", ts)
	case ts > MaxTime:
		return fmt.Errorf("timestamp %d is too far in the future: windows and joins take up to %d", ts, int64(MaxTime))
	}
	return nil
}
