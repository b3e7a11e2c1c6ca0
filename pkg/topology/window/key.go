package window

import (
	"encoding/binary"
	"math"
)

// Rows of a store with windows, by their first byte. Times and lengths are big-endian, so that rows are in order of them.
//
//	c                                      the clock: stream time, and the end up to which results were sent on
//	r <start 8> <key>                      tumbling and hopping windows: in order of time
//	k <length 4> <key> <end 8> <start 8>   sessions, and windows of custom steps: those of a key together, in order of time
//	k <length 4> <key> <start 8>           sliding windows
//	t <end 8> <key> <start 8>              an entry for each row of k, in order of time; its value is empty
const (
	clockRow = 'c'
	timeRow  = 'r'
	keyRow   = 'k'
	endRow   = 't'
)

// ClockKey is the key of the row that holds the clock.
var ClockKey = []byte{clockRow}

// ByKey tells whether the rows of a key are together; else those of a time are.
func (s Spec) ByKey() bool { return s.Kind == Sliding || s.bothBounds() }

// bothBounds tells whether keys have the end of a window, too: it does not follow from the start.
func (s Spec) bothBounds() bool { return s.Kind == Session || s.Kind == Custom }

// AppendRow appends the key of a window's row.
func (s Spec) AppendRow(b, key []byte, w Bounds) []byte {
	if !s.ByKey() {
		b = binary.BigEndian.AppendUint64(append(b, timeRow), uint64(w.Start))
		return append(b, key...)
	}
	b = AppendKeyRows(b, key)
	if s.bothBounds() {
		b = binary.BigEndian.AppendUint64(b, uint64(w.End))
	}
	return binary.BigEndian.AppendUint64(b, uint64(w.Start))
}

// AppendKeyRows appends what the rows of a key begin with, of sliding windows and sessions.
func AppendKeyRows(b, key []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, keyRow), uint32(len(key)))
	return append(b, key...)
}

// Rows are the first row of the windows that begin in [from, to), and the first one behind them: those of one key, or if it is nil
// of all. There may be rows of other windows in between.
func (s Spec) Rows(key []byte, from, to int64) (first, behind []byte) {
	switch {
	case !s.ByKey():
		return AppendFromStart(nil, from), AppendFromStart(nil, to)
	case key == nil:
		return []byte{keyRow}, []byte{keyRow + 1}
	case s.bothBounds(): // in order of the end, which is not before the start
		return binary.BigEndian.AppendUint64(AppendKeyRows(nil, key), uint64(from)), binary.BigEndian.AppendUint64(AppendKeyRows(nil, key), math.MaxUint64)
	default:
		return binary.BigEndian.AppendUint64(AppendKeyRows(nil, key), uint64(from)), binary.BigEndian.AppendUint64(AppendKeyRows(nil, key), uint64(to))
	}
}

// AppendEnd appends the key of the entry for a window by its end.
func AppendEnd(b, key []byte, w Bounds) []byte {
	b = append(AppendFromEnd(b, w.End), key...)
	return binary.BigEndian.AppendUint64(b, uint64(w.Start))
}

// AppendFromEnd appends what the entries of windows with this end begin with.
func AppendFromEnd(b []byte, end int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, endRow), uint64(end))
}

// AppendFromStart is AppendFromEnd for the rows of tumbling and hopping windows with this start.
func AppendFromStart(b []byte, start int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, timeRow), uint64(start))
}

// ParseRow takes the key of a row, or of an entry by end, apart. It is false for what is neither.
func (s Spec) ParseRow(row []byte) (key []byte, w Bounds, ok bool) {
	const header, bound = 1, 8
	if len(row) < header+bound {
		return nil, w, false
	}
	n := len(row)
	switch {
	case row[0] == timeRow && !s.ByKey():
		w.Start = int64(binary.BigEndian.Uint64(row[header:]))
		w.End = s.End(w.Start)
		return row[header+bound:], w, true
	case row[0] == endRow && n >= header+2*bound:
		w.End = int64(binary.BigEndian.Uint64(row[header:]))
		w.Start = int64(binary.BigEndian.Uint64(row[n-bound:]))
		return row[header+bound : n-bound], w, true
	case row[0] != keyRow || !s.ByKey():
		return nil, w, false
	}
	const length = 4
	keyLen := int(binary.BigEndian.Uint32(row[header:]))
	tail := header + length + keyLen
	w.Start = int64(binary.BigEndian.Uint64(row[n-bound:]))
	switch {
	case s.Kind == Sliding && n == tail+bound:
		w.End = s.End(w.Start)
	case s.bothBounds() && n == tail+2*bound:
		w.End = int64(binary.BigEndian.Uint64(row[tail:]))
	default:
		return nil, w, false
	}
	return row[header+length : tail], w, true
}

// Result reports whether a row with this key holds a result: it is neither the clock nor an entry by end.
func Result(row []byte) bool { return len(row) > 0 && (row[0] == timeRow || row[0] == keyRow) }

// AppendKey appends a key with its window as Kafka Streams writes it to topics: the key and the start; for sessions the key, the
// end and the start.
func (s Spec) AppendKey(b, key []byte, w Bounds) []byte {
	b = append(b, key...)
	if s.bothBounds() {
		b = binary.BigEndian.AppendUint64(b, uint64(w.End))
	}
	return binary.BigEndian.AppendUint64(b, uint64(w.Start))
}

// KeyOverhead is what AppendKey adds to a key, in bytes.
func (s Spec) KeyOverhead() int {
	if s.bothBounds() {
		return 16
	}
	return 8
}

// ParseKey takes apart what AppendKey has made.
func (s Spec) ParseKey(b []byte) (key []byte, w Bounds, ok bool) {
	n := len(b) - s.KeyOverhead()
	if n < 0 {
		return nil, w, false
	}
	w.Start = int64(binary.BigEndian.Uint64(b[len(b)-8:]))
	if s.bothBounds() {
		w.End = int64(binary.BigEndian.Uint64(b[n:]))
	} else {
		w.End = s.End(w.Start)
	}
	return b[:n:n], w, true
}

// Clock is what a store with windows knows of time.
type Clock struct {
	Time int64 // stream time; -1: no record was seen yet
	Sent int64 // the end up to which the results of closed windows were sent on; -1: none were
}

const clockLen = 16

// NewClock is that of an empty store.
func NewClock() Clock { return Clock{Time: -1, Sent: -1} }

// Append appends the value of the clock's row.
func (c Clock) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(c.Time)), uint64(c.Sent))
}

// ParseClock reads the value of the clock's row.
func ParseClock(b []byte) (Clock, bool) {
	if len(b) != clockLen {
		return Clock{}, false
	}
	return Clock{Time: int64(binary.BigEndian.Uint64(b)), Sent: int64(binary.BigEndian.Uint64(b[8:]))}, true
}
