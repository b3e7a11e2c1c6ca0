package leave

import (
	"fmt"
	"time"
)

// Deadline says how long an instance may take to hand its tasks over. The zero value is Default.
type Deadline struct {
	kind deadlineKind
	at   time.Time
}

type deadlineKind uint8

const (
	kindDefault deadlineKind = iota
	kindNever
	kindAt
	kindNow
)

var (
	// Default stands for the instance's own scale_down_timeout, counted from when it hears of the mark.
	Default = Deadline{}
	// Never lets the leave take as long as it needs.
	Never = Deadline{kind: kindNever}
	// Now gives everything up at once.
	Now = Deadline{kind: kindNow}
)

// At is a deadline at a point in time, of which whole milliseconds count.
func At(t time.Time) Deadline {
	return Deadline{kind: kindAt, at: time.UnixMilli(t.UnixMilli())}
}

// After is the deadline that a scale_down_timeout sets at a point in time; zero or less means Never.
func After(now time.Time, timeout time.Duration) Deadline {
	if timeout <= 0 {
		return Never
	}
	return At(now.Add(timeout))
}

// Passed reports whether nothing more may be waited for.
func (d Deadline) Passed(now time.Time) bool {
	return d.kind == kindNow || d.kind == kindAt && !now.Before(d.at)
}

// Time is the point in time of an At deadline.
func (d Deadline) Time() (time.Time, bool) { return d.at, d.kind == kindAt }

// UnixMilli is the deadline as reports carry it: ms since the epoch, 0 for none.
func (d Deadline) UnixMilli() int64 {
	if d.kind != kindAt {
		return 0
	}
	return d.at.UnixMilli()
}

// Earlier is the one of two resolved deadlines that is over first.
func (d Deadline) Earlier(o Deadline) Deadline {
	switch {
	case d.kind == kindNow || o.kind == kindNow:
		return Now
	case d.kind != kindAt:
		return o
	case o.kind != kindAt || d.at.Before(o.at):
		return d
	}
	return o
}

// String is "default", "none", "now" or a time (RFC 3339, UTC).
func (d Deadline) String() string {
	switch d.kind {
	case kindNever:
		return "none"
	case kindNow:
		return "now"
	case kindAt:
		return d.at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	default:
		return "default"
	}
}

// MarshalText writes the form of String.
func (d Deadline) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the form that String writes.
func (d *Deadline) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "default":
		*d = Default
	case "none":
		*d = Never
	case "now":
		*d = Now
	default:
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return fmt.Errorf("%q is no deadline: want default, none, now or a time like 2006-01-02T15:04:05Z", s)
		}
		*d = At(t)
	}
	return nil
}
