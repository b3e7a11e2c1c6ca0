package window

import (
	"encoding/binary"
	"math"
)

// Rows of a store that buffers the records of one side of a join, by their first byte. Times, lengths and numbers are big-endian.
//
//	c                                  the side's stream time and its last record's number
//	k <length 4> <key> <time 8> <number 8>   a record
//	t <time 8> <number 8> <key>        an entry for each record, in order of time
//	u <time 8> <key> <number 8>        an entry for each one that has found no counterpart yet
//
// Numbers count the side's records, so that those of one time stay apart, and in order.
const waitingRow = 'u'

// Place is where a record is in a buffer.
type Place struct{ Time, Number int64 }

// AppendRecord appends the key of a record's row.
func (p Place) AppendRecord(b, key []byte) []byte { return p.append(AppendKeyRows(b, key)) }

func (p Place) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(p.Time)), uint64(p.Number))
}

// AppendEntry appends the key of a record's entry in order of time.
func (p Place) AppendEntry(b, key []byte) []byte { return append(p.append(append(b, endRow)), key...) }

// AppendWaiting appends the key of the entry of a record without a counterpart.
func (p Place) AppendWaiting(b, key []byte) []byte {
	b = append(binary.BigEndian.AppendUint64(append(b, waitingRow), uint64(p.Time)), key...)
	return binary.BigEndian.AppendUint64(b, uint64(p.Number))
}

// ParseBuffered takes apart the key of a record's row or of one of its entries; false for what is neither.
func ParseBuffered(row []byte) (key []byte, p Place, ok bool) {
	const header, number, length = 1, 8, 4
	n := len(row)
	if n < header+2*number {
		return nil, p, false
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(row[i:])) }
	switch row[0] {
	case endRow:
		return row[header+2*number:], Place{at(header), at(header + number)}, true
	case waitingRow:
		return row[header+number : n-number], Place{at(header), at(n - number)}, true
	case keyRow:
		if keyLen := int(binary.BigEndian.Uint32(row[header:])); n == header+length+keyLen+2*number {
			return row[header+length : header+length+keyLen], Place{at(n - 2*number), at(n - number)}, true
		}
	}
	return nil, p, false
}

// BufferedRows are the first row of a record in a buffer, and the first one behind those: of a key, or if it is nil of all.
func BufferedRows(key []byte) (first, behind []byte) {
	if key == nil {
		return []byte{keyRow}, []byte{keyRow + 1}
	}
	return AppendRecordsFrom(nil, key, 0), AppendRecordsFrom(nil, key, math.MaxInt64)
}

// Bounds of the rows of a buffer: records of a key from a time on, and entries from a time on. The rows of later times follow.
func AppendRecordsFrom(b, key []byte, time int64) []byte {
	return binary.BigEndian.AppendUint64(AppendKeyRows(b, key), uint64(time))
}

// AppendEntriesFrom is AppendRecordsFrom for entries in order of time.
func AppendEntriesFrom(b []byte, time int64) []byte { return AppendFromEnd(b, time) }

// AppendWaitingFrom is AppendRecordsFrom for entries of records without a counterpart.
func AppendWaitingFrom(b []byte, time int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, waitingRow), uint64(time))
}

// Append appends the value of the clock's row.
func (p Place) Append(b []byte) []byte { return p.append(b) }

// ParsePlace reads the value of the clock's row.
func ParsePlace(b []byte) (Place, bool) {
	c, ok := ParseClock(b)
	return Place{c.Time, c.Sent}, ok
}
