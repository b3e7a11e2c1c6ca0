package topology

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// buffer holds the records of one side of a join of streams, for as long as they may find a counterpart.
type buffer struct {
	rows
	keeps int64 // ms by which a record may be behind the side's stream time before it is forgotten
	waits bool  // a record without a counterpart gives a result of its own

	row, value []byte // being written
	waiting    bound  // of the times of records without a counterpart
	present    bound  // of the times of all records
}

func newBuffer(c *chain, s *StoreSpec, keeps int64, waits bool) *buffer {
	return &buffer{rows: c.rows(s), keeps: keeps, waits: waits, waiting: unknownBound(c.p), present: unknownBound(c.p)}
}

// last is the side's stream time, -1 if it has seen nothing, and the number of its last record.
func (b *buffer) last() (window.Place, error) {
	row, ok, err := b.get(window.ClockKey)
	if err != nil || !ok {
		return window.Place{Time: -1}, err
	}
	last, ok := window.ParsePlace(row)
	if !ok {
		return last, b.spec.corrupt(row)
	}
	return last, nil
}

// add puts a record in, and reports where it is.
func (b *buffer) add(key []byte, value *datum, ts int64) (window.Place, error) {
	if err := value.encode(b.spec.Value, &b.p.slabs); err != nil {
		return window.Place{}, fault{err}
	}
	last, err := b.last()
	if err != nil {
		return last, err
	}
	at := window.Place{Time: ts, Number: last.Number + 1}
	now := max(last.Time, ts)
	b.value = window.Place{Time: now, Number: at.Number}.Append(b.value[:0])
	if err := b.put(window.ClockKey, b.value); err != nil {
		return at, err
	}
	if ts >= now-b.keeps {
		b.row = at.AppendRecord(b.row[:0], key)
		b.value = append(binary.BigEndian.AppendUint64(b.value[:0], uint64(ts)), value.raw...)
		if err := b.put(b.row, b.value); err != nil {
			return at, err
		}
		b.present.lower(ts, b.p)
		b.row = at.AppendEntry(b.row[:0], key)
		if err := b.put(b.row, entryValue); err != nil {
			return at, err
		}
	}
	return at, nil
}

// match is a record that another one has found.
type match struct {
	window.Place
	stored
}

// find returns the records of a key between two times, in order of time and arrival. What is forgotten is not there.
func (b *buffer) find(key []byte, from, to int64) (found []match, err error) {
	last, err := b.last()
	if err != nil || last.Time < 0 {
		return nil, err
	}
	from = max(0, from, last.Time-b.keeps+1)
	if to = max(0, to); to < from {
		return nil, nil
	}
	var bad error
	err = b.scan(window.AppendRecordsFrom(nil, key, from), window.AppendRecordsFrom(nil, key, to+1), func(row, value []byte) bool {
		_, at, ok := window.ParseBuffered(row)
		if !ok {
			bad = b.spec.corrupt(row)
			return false
		}
		m := match{Place: at}
		if m.stored, bad = b.spec.parse(value, true, &b.p.slabs); bad != nil {
			return false
		}
		found = append(found, m)
		return true
	})
	if bad != nil {
		err = bad
	}
	return found, err
}

// wait notes that a record has found no counterpart so far.
func (b *buffer) wait(key []byte, at window.Place) error {
	b.waiting.lower(at.Time, b.p)
	b.row = at.AppendWaiting(b.row[:0], key)
	return b.put(b.row, entryValue)
}

// matched notes that a record has found one.
func (b *buffer) matched(key []byte, at window.Place) error {
	if !b.waits {
		return nil
	}
	b.row = at.AppendWaiting(b.row[:0], key)
	if _, waits, err := b.get(b.row); err != nil || !waits {
		return err
	}
	return b.remove(b.row)
}

// buffered is a record as an entry tells of it.
type buffered struct {
	window.Place
	key []byte
}

// due takes the records out of those that wait whose time is up to last, in order of time and key.
func (b *buffer) due(last int64) ([]buffered, error) {
	if !b.waits || !b.waiting.reached(last, b.p) {
		return nil, nil
	}
	found, next, err := b.entries(window.AppendWaitingFrom(nil, 0), last, math.MaxInt)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		b.row = e.AppendWaiting(b.row[:0], e.key)
		if err := b.remove(b.row); err != nil {
			return nil, err
		}
	}
	b.waiting.raise(next, b.p)
	return found, nil
}

// load reads a record.
func (b *buffer) load(e buffered) (stored, error) {
	b.row = e.AppendRecord(b.row[:0], e.key)
	row, ok, err := b.get(b.row)
	if err != nil {
		return stored{}, err
	}
	return b.spec.parse(row, ok, &b.p.slabs)
}

// expire deletes records of which the time is over, a bounded number of them. One that still waits for a counterpart may be
// just as old as those that are not found any more.
func (b *buffer) expire() error {
	last, err := b.last()
	over := last.Time - b.keeps - 1
	if err != nil || !b.present.reached(over, b.p) {
		return err
	}
	found, next, err := b.entries(window.AppendEntriesFrom(nil, max(0, b.present.time)), over, expiring)
	if err != nil {
		return err
	}
	for _, e := range found {
		b.row = e.AppendRecord(b.row[:0], e.key)
		if err := b.remove(b.row); err != nil {
			return err
		}
		b.row = e.AppendEntry(b.row[:0], e.key)
		if err := b.remove(b.row); err != nil {
			return err
		}
	}
	b.present.raise(next, b.p)
	return nil
}

// entries reads entries from a row on, with times up to last, and what the next time is at least.
func (b *buffer) entries(from []byte, last int64, most int) (found []buffered, next int64, err error) {
	next = math.MaxInt64
	var bad error
	err = b.scan(from, []byte{from[0] + 1}, func(row, _ []byte) bool {
		row = slices.Clone(row)
		key, at, ok := window.ParseBuffered(row)
		if !ok {
			bad = b.spec.corrupt(row)
			return false
		}
		if at.Time > last || len(found) == most {
			next = at.Time
			return false
		}
		found = append(found, buffered{at, key})
		return true
	})
	if bad != nil {
		err = bad
	}
	return found, next, err
}
