package topology

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// expiry knows since when rows were not written, in a store of its own:
//
//	c              stream time
//	k <key>        a row, by its key; the value is the timestamp of its last change
//	t <time 8> <key>  the same in order of time
type expiry struct {
	rows
	after    int64 // ms
	row, buf []byte
	present  bound
}

func newExpiry(c *chain, s *StoreSpec, after int64) *expiry {
	return &expiry{rows: c.rows(s), after: after, present: unknownBound(c.p)}
}

func appendTimed(b []byte, ts int64, key []byte) []byte {
	return append(window.AppendFromEnd(b, ts), key...)
}

// advance moves stream time on and returns it.
func (e *expiry) advance(ts int64) (int64, error) {
	row, ok, err := e.get(window.ClockKey)
	if err != nil {
		return 0, err
	}
	if ok {
		if len(row) != stampLen {
			return 0, e.spec.corrupt(row)
		}
		if now := int64(binary.BigEndian.Uint64(row)); now >= ts {
			return now, nil
		}
	}
	e.buf = binary.BigEndian.AppendUint64(e.buf[:0], uint64(ts))
	return ts, e.put(window.ClockKey, e.buf)
}

// since returns the timestamp of a row's last change.
func (e *expiry) since(key []byte) (ts int64, ok bool, err error) {
	e.row = append(append(e.row[:0], 'k'), key...)
	row, ok, err := e.get(e.row)
	if err != nil || !ok {
		return 0, false, err
	}
	if len(row) != stampLen {
		return 0, false, e.spec.corrupt(row)
	}
	return int64(binary.BigEndian.Uint64(row)), true, nil
}

// note notes a change of a row.
func (e *expiry) note(key []byte, ts int64) error {
	ts = max(0, ts)
	if err := e.forget(key); err != nil {
		return err
	}
	e.row = append(append(e.row[:0], 'k'), key...)
	e.buf = binary.BigEndian.AppendUint64(e.buf[:0], uint64(ts))
	if err := e.put(e.row, e.buf); err != nil {
		return err
	}
	e.present.lower(ts, e.p)
	e.row = appendTimed(e.row[:0], ts, key)
	return e.put(e.row, entryValue)
}

// forget takes a row out.
func (e *expiry) forget(key []byte) error {
	ts, ok, err := e.since(key)
	if err != nil || !ok {
		return err
	}
	if err := e.remove(e.row); err != nil {
		return err
	}
	e.row = appendTimed(e.row[:0], ts, key)
	return e.remove(e.row)
}

// due returns keys of rows whose time is over at a stream time, at most so many, in order of time. The caller takes them out.
func (e *expiry) due(now int64, most int) (keys [][]byte, err error) {
	over := now - e.after
	if !e.present.reached(over, e.p) {
		return nil, nil
	}
	const header = 1 + stampLen
	next := int64(math.MaxInt64)
	from := window.AppendFromEnd(nil, max(0, e.present.time))
	err = e.scan(from, []byte{from[0] + 1}, func(row, _ []byte) bool {
		ts := int64(math.MaxInt64)
		if len(row) >= header {
			ts = int64(binary.BigEndian.Uint64(row[1:]))
		}
		if ts > over || len(keys) == most {
			next = ts
			return false
		}
		keys = append(keys, slices.Clone(row[header:]))
		return true
	})
	e.present.raise(next, e.p)
	return keys, err
}
