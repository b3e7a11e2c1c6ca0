package group

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// maxTasks bounds how many tasks one report or plan may name, so that a few hostile bytes cannot stand
// for billions of them.
const maxTasks = 1 << 17

// A set of tasks is the number of its subtopologies, then for each in ascending order its id (as the
// distance from the one before), a header and a body. The lowest bit of the header is the kind of body,
// the rest its length:
//
//	ranges  so many runs of partitions; each is the gap to the run before, doubled, plus one if the run
//	        has more than one partition: then its length less two follows
//	bitmap  the first partition, then so many bytes, the lowest bit of the first byte being that partition
//
// The smaller body is taken, ranges if they are equal.
const (
	bodyRanges = 0
	bodyBitmap = 1
)

// appendTasks appends the set of tasks; order and duplicates do not matter. Ids below zero do not exist
// and are left out.
func appendTasks(dst []byte, tasks []assign.TaskID) []byte {
	tasks = normalTasks(tasks)
	subtopologies := 0
	for i := range tasks {
		if i == 0 || tasks[i].Subtopology != tasks[i-1].Subtopology {
			subtopologies++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(subtopologies))
	var ranges, bitmap []byte
	next := int32(0) // the lowest subtopology that may follow
	for len(tasks) > 0 {
		sub := tasks[0].Subtopology
		n := 1
		for n < len(tasks) && tasks[n].Subtopology == sub {
			n++
		}
		part := tasks[:n]
		tasks = tasks[n:]
		dst = binary.AppendUvarint(dst, uint64(sub-next))
		next = sub + 1

		var runs int
		ranges, runs = appendRanges(ranges[:0], part)
		header, body := uint64(runs)<<1|bodyRanges, ranges
		if span := bitmapBytes(part); span < len(ranges) { // a bitmap has its first partition on top
			bitmap = appendBitmap(bitmap[:0], part)
			if len(bitmap) < len(ranges) {
				header, body = uint64(span)<<1|bodyBitmap, bitmap
			}
		}
		dst = append(binary.AppendUvarint(dst, header), body...)
	}
	return dst
}

func appendRanges(dst []byte, tasks []assign.TaskID) ([]byte, int) {
	runs, next := 0, int32(0) // the lowest partition that the next run may start with
	for i := 0; i < len(tasks); runs++ {
		j := i + 1
		for j < len(tasks) && tasks[j].Partition == tasks[j-1].Partition+1 {
			j++
		}
		gap := uint64(tasks[i].Partition-next) << 1
		if j-i == 1 {
			dst = binary.AppendUvarint(dst, gap)
		} else {
			dst = binary.AppendUvarint(dst, gap|1)
			dst = binary.AppendUvarint(dst, uint64(j-i-2))
		}
		next = tasks[j-1].Partition + 2 // a run that touched the one before would be part of it
		i = j
	}
	return dst, runs
}

func bitmapBytes(tasks []assign.TaskID) int {
	return int(tasks[len(tasks)-1].Partition-tasks[0].Partition)/8 + 1
}

func appendBitmap(dst []byte, tasks []assign.TaskID) []byte {
	first := tasks[0].Partition
	dst = binary.AppendUvarint(dst, uint64(first))
	at := len(dst)
	dst = append(dst, make([]byte, bitmapBytes(tasks))...)
	for _, t := range tasks {
		bit := int(t.Partition - first)
		dst[at+bit/8] |= 1 << (bit % 8)
	}
	return dst
}

// isTask says whether there can be such a task; the top of the range is left out so that "the next one" is
// always a number.
func isTask(t assign.TaskID) bool {
	return t.Subtopology >= 0 && t.Subtopology < math.MaxInt32 && t.Partition >= 0 && t.Partition < math.MaxInt32-1
}

// normalTasks returns the tasks in order, each once, in a slice of its own.
func normalTasks(tasks []assign.TaskID) []assign.TaskID {
	out := make([]assign.TaskID, 0, len(tasks))
	for _, t := range tasks {
		if isTask(t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, assign.TaskID.Compare)
	return slices.Compact(out)
}

// reader takes user data apart. The first mistake stays in err; everything read after it is zero.
type reader struct {
	b     []byte
	tasks int // named so far
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
		r.b = nil
	}
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("truncated number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// number reads a uvarint that must not exceed limit.
func (r *reader) number(limit uint64, what string) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail("%s is %d, more than %d", what, v, limit)
		return 0
	}
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("truncated number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.fail("truncated: %d bytes wanted, %d left", n, len(r.b))
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) string() string {
	return string(r.bytes(int(r.number(uint64(len(r.b)), "length of a text"))))
}

// taskSet reads what appendTasks wrote; the tasks are in order.
func (r *reader) taskSet() []assign.TaskID {
	var out []assign.TaskID
	n := r.number(uint64(len(r.b)), "number of subtopologies")
	next := uint64(0)
	for ; n > 0 && r.err == nil; n-- {
		sub := next + r.number(math.MaxInt32, "subtopology")
		if sub >= math.MaxInt32 {
			r.fail("subtopology is out of range")
			return nil
		}
		next = sub + 1
		header := r.uvarint()
		if length := header >> 1; length > uint64(len(r.b)) {
			r.fail("truncated: a set of %d parts, %d bytes left", length, len(r.b))
		} else if header&1 == bodyRanges {
			out = r.ranges(out, int32(sub), int(length))
		} else {
			out = r.bitmap(out, int32(sub), int(length))
		}
	}
	if r.err != nil {
		return nil
	}
	return out
}

func (r *reader) ranges(out []assign.TaskID, sub int32, runs int) []assign.TaskID {
	next := uint64(0)
	for ; runs > 0 && r.err == nil; runs-- {
		gap := r.uvarint()
		length := uint64(1)
		if gap&1 == 1 {
			length = 2 + r.number(maxTasks, "length of a run")
		}
		if gap>>1 > math.MaxInt32 {
			r.fail("partition is out of range")
			return nil
		}
		first := next + gap>>1
		if !r.count(length) || !r.inRange(first+length-1) {
			return nil
		}
		for p := first; p < first+length; p++ {
			out = append(out, assign.TaskID{Subtopology: sub, Partition: int32(p)})
		}
		next = first + length + 1
	}
	return out
}

func (r *reader) bitmap(out []assign.TaskID, sub int32, length int) []assign.TaskID {
	first := r.number(math.MaxInt32, "partition")
	for i, b := range r.bytes(length) {
		if !r.count(uint64(bits.OnesCount8(b))) {
			return nil
		}
		for ; b != 0; b &= b - 1 {
			p := first + uint64(i)*8 + uint64(bits.TrailingZeros8(b))
			if !r.inRange(p) {
				return nil
			}
			out = append(out, assign.TaskID{Subtopology: sub, Partition: int32(p)})
		}
	}
	return out
}

// count notes n more tasks and says whether so many are allowed.
func (r *reader) count(n uint64) bool {
	r.tasks += int(n)
	if r.tasks > maxTasks {
		r.fail("more than %d tasks", maxTasks)
		return false
	}
	return true
}

func (r *reader) inRange(partition uint64) bool {
	if partition >= math.MaxInt32-1 {
		r.fail("partition is out of range")
		return false
	}
	return true
}
