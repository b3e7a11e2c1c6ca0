package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Keys in a task's database:
//
//	0x0000 'f'               format and task name: the mark that the database is ours
//	0x0000 'c' <store name>  the store's checkpoint and its number
//	0x0000 'd' <store name>  the store's definition; missing if it was written by a version that did not know of it
//	<number> <key>           the store's rows; numbers from 1, two bytes, big-endian
//
// A store keeps its number for good, so that stores can be added to a topology and taken away.
const (
	prefixLen = 2
	formatTag = "streamworker state 1: task "
)

var (
	formatKey           = []byte{0, 0, 'f'}
	checkpointKeyPrefix = []byte{0, 0, 'c'}
	checkpointKeyEnd    = []byte{0, 0, 'c' + 1}
	definitionKeyPrefix = []byte{0, 0, 'd'}
	definitionKeyEnd    = []byte{0, 0, 'd' + 1}
)

func checkpointKey(store string) []byte {
	return append(checkpointKeyPrefix[:len(checkpointKeyPrefix):len(checkpointKeyPrefix)], store...)
}

func definitionKey(store string) []byte {
	return append(definitionKeyPrefix[:len(definitionKeyPrefix):len(definitionKeyPrefix)], store...)
}

func storePrefix(number uint16) []byte { return binary.BigEndian.AppendUint16(nil, number) }

// checkpoint says how much of its changelog a store holds.
type checkpoint struct {
	number   uint16   // of the store
	topicID  [16]byte // of the changelog
	position int64    // next offset to apply
	// asOf is the latest time at which the store was known to hold everything up to the changelog's end,
	// or else at which reading from the start began. Tombstones written since may be missed once the
	// changelog's delete.retention.ms has passed.
	asOf time.Time
}

const checkpointLen = 1 + 2 + 16 + 8 + 8

func (c checkpoint) encode() []byte {
	b := make([]byte, 0, checkpointLen)
	b = append(b, 1) // version
	b = binary.BigEndian.AppendUint16(b, c.number)
	b = append(b, c.topicID[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.position))
	return binary.BigEndian.AppendUint64(b, uint64(c.asOf.UnixMilli()))
}

func decodeCheckpoint(b []byte) (checkpoint, error) {
	if len(b) != checkpointLen || b[0] != 1 {
		return checkpoint{}, errors.New("unreadable checkpoint")
	}
	c := checkpoint{
		number:   binary.BigEndian.Uint16(b[1:]),
		topicID:  [16]byte(b[3:19]),
		position: int64(binary.BigEndian.Uint64(b[19:])),
		asOf:     time.UnixMilli(int64(binary.BigEndian.Uint64(b[27:]))),
	}
	if c.number == 0 || c.position < 0 {
		return checkpoint{}, errors.New("unreadable checkpoint")
	}
	return c, nil
}

// stale says why the store has to be rebuilt from the start of its changelog; "" if it need not be.
func (c checkpoint) stale(spec StoreSpec, now time.Time) string {
	if c.position == 0 {
		return "" // nothing there
	}
	if c.topicID != spec.TopicID {
		return fmt.Sprintf("the changelog topic was created anew (id %x, was %x)", spec.TopicID, c.topicID)
	}
	if age := now.Sub(c.asOf); spec.outlasts(age) || spec.Retention > 0 && age < -spec.margin() {
		return fmt.Sprintf("it is from %s, and tombstones last %s (delete.retention.ms, less a margin of %s)",
			c.asOf.UTC().Format(time.RFC3339), spec.Retention, spec.margin())
	}
	return ""
}

func (s *StoreSpec) margin() time.Duration { return min(time.Hour, s.Retention/10) }

// outlasts says whether tombstones that are so old may be gone.
func (s *StoreSpec) outlasts(age time.Duration) bool {
	return s.Retention > 0 && age > s.Retention-s.margin()
}
