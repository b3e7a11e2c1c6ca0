package group

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// User data starts with what it is and its version. A new version must be readable by one release before
// the next release writes it: instances of both are members of one group while it is upgraded. What older builds may leave
// unread needs no new version: it goes behind the rest (reader.later).
const (
	magicReport = 0xb5
	magicPlan   = 0xb6

	wireVersion = 1

	flagLeaving    = 1 << 0 // of a report
	flagDeadline   = 1 << 1 // of a report
	flagSuperseded = 1 << 0 // of a plan

	laterStuck = 1 // of a report: copies that do not come on
)

// EncodeReport writes a report. Equal reports give equal bytes, whatever the order in their slices.
func EncodeReport(r assign.Report) []byte {
	b := []byte{magicReport, wireVersion}
	b = appendString(b, r.Instance)
	b = binary.AppendVarint(b, r.Incarnation.StartMs)
	b = binary.LittleEndian.AppendUint64(b, r.Incarnation.Random)
	b = binary.AppendUvarint(b, uint64(r.Incarnation.Starts))
	var flags byte
	if r.Leaving {
		flags |= flagLeaving
	}
	if r.DeadlineMs != 0 {
		flags |= flagDeadline
	}
	b = append(b, flags)
	if r.DeadlineMs != 0 {
		b = binary.AppendVarint(b, r.DeadlineMs)
	}
	b = binary.AppendUvarint(b, uint64(r.Capacity))
	b = appendString(b, r.Rack)
	b = binary.AppendUvarint(b, uint64(len(r.Labels)))
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		b = appendString(appendString(b, k), r.Labels[k])
	}
	b = binary.LittleEndian.AppendUint64(b, r.ConfigHash)
	b = binary.AppendUvarint(b, uint64(r.Nonce))
	b = appendTasks(b, r.Owned)
	b = appendHandovers(b, r.Releasing)
	b = appendHandovers(b, r.Taking)
	b = appendCopies(b, r.Learning)
	b = appendTasks(b, r.Ready)
	b = appendCopies(b, r.Standby)
	b = appendCopies(b, r.Local)
	if len(r.Stuck) > 0 {
		b = appendString(append(b, laterStuck), string(appendTasks(nil, r.Stuck)))
	}
	return b
}

// DecodeReport reads what EncodeReport wrote. Its errors wrap ErrForeign, ErrVersion or ErrCorrupt. What
// it accepts may still be nonsense (unknown tasks, two claims): the assignor settles that.
func DecodeReport(b []byte) (assign.Report, error) {
	r, err := open(b, magicReport, "report")
	if err != nil {
		return assign.Report{}, err
	}
	var rep assign.Report
	rep.Instance = r.string()
	rep.Incarnation.StartMs = r.varint()
	rep.Incarnation.Random = r.uint64()
	rep.Incarnation.Starts = uint32(r.number(1<<32-1, "start counter"))
	flags := r.flags(flagLeaving | flagDeadline)
	rep.Leaving = flags&flagLeaving != 0
	if flags&flagDeadline != 0 {
		rep.DeadlineMs = r.varint()
	}
	rep.Capacity = uint32(r.number(1<<32-1, "capacity"))
	rep.Rack = r.string()
	if n := r.number(uint64(len(r.b))/2, "number of labels"); n > 0 {
		rep.Labels = make(map[string]string, n)
		for ; n > 0 && r.err == nil; n-- {
			k := r.string()
			rep.Labels[k] = r.string()
		}
	}
	rep.ConfigHash = r.uint64()
	rep.Nonce = uint32(r.number(1<<32-1, "nonce"))
	rep.Owned = r.taskSet()
	rep.Releasing = r.handovers()
	rep.Taking = r.handovers()
	rep.Learning = r.copies()
	rep.Ready = r.taskSet()
	rep.Standby = r.copies()
	rep.Local = r.copies()
	r.later(func(number uint64, field *reader) {
		if number == laterStuck {
			rep.Stuck = field.taskSet()
		}
	})
	if err := r.end(); err != nil {
		return assign.Report{}, fmt.Errorf("report: %w", err)
	}
	return rep, nil
}

// EncodePlan writes what one member is told. Equal plans give equal bytes.
func EncodePlan(p assign.MemberPlan) []byte {
	b := []byte{magicPlan, wireVersion, 0}
	if p.Superseded {
		b[2] = flagSuperseded
	}
	b = appendTasks(b, p.Own)
	b = appendHandovers(b, p.Take)
	b = appendHandovers(b, p.Release)
	b = appendTasks(b, p.Learn)
	return appendTasks(b, p.Standby)
}

// DecodePlan reads what EncodePlan wrote. Its errors wrap ErrForeign, ErrVersion or ErrCorrupt.
func DecodePlan(b []byte) (assign.MemberPlan, error) {
	r, err := open(b, magicPlan, "plan")
	if err != nil {
		return assign.MemberPlan{}, err
	}
	var p assign.MemberPlan
	p.Superseded = r.flags(flagSuperseded)&flagSuperseded != 0
	p.Own = r.taskSet()
	p.Take = r.handovers()
	p.Release = r.handovers()
	p.Learn = r.taskSet()
	p.Standby = r.taskSet()
	r.later(func(uint64, *reader) {}) // there are none yet
	if err := r.end(); err != nil {
		return assign.MemberPlan{}, fmt.Errorf("plan: %w", err)
	}
	return p, nil
}

// open checks the first two bytes.
func open(b []byte, magic byte, what string) (*reader, error) {
	switch {
	case len(b) < 2 || b[0] != magic:
		return nil, fmt.Errorf("%s: %w: its %d bytes start with %x", what, ErrForeign, len(b), b[:min(len(b), 4)])
	case b[1] != wireVersion:
		return nil, fmt.Errorf("%s: %w: it is %d, this build reads %d; run one version of streamworker in the group",
			what, ErrVersion, b[1], wireVersion)
	}
	return &reader{b: b[2:]}, nil
}

// flags reads a byte of flags, of which only some exist: to ignore a new one would misread what it says.
func (r *reader) flags(known byte) byte {
	f := r.byte()
	if f&^known != 0 {
		r.fail("unknown flags %#x", f)
	}
	return f
}

// later reads what has come behind the fields that are always there: each is its number, from 1 on and in order, and a text. Numbers
// that are not known are left unread, so that a build may add some that older ones need not know.
func (r *reader) later(read func(number uint64, field *reader)) {
	for last := uint64(0); r.err == nil && len(r.b) > 0; {
		number := r.uvarint()
		if number <= last {
			r.fail("field %d behind field %d", number, last)
		}
		last = number
		field := &reader{b: []byte(r.string()), tasks: r.tasks}
		read(number, field)
		if r.tasks = field.tasks; r.err == nil {
			r.err = field.err
		}
	}
}

// end checks that nothing is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return r.err
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendCopies appends the tasks as a set, then the position of each as its trailing zero bits (a byte)
// and the rest: rounded positions are short.
func appendCopies(dst []byte, copies []assign.Copy) []byte {
	positions := make(map[assign.TaskID]int64, len(copies))
	tasks := make([]assign.TaskID, 0, len(copies))
	for _, c := range copies {
		positions[c.Task] = max(positions[c.Task], c.Position, 0)
		tasks = append(tasks, c.Task)
	}
	tasks = normalTasks(tasks)
	dst = appendTasks(dst, tasks)
	for _, t := range tasks {
		p, zeros := uint64(positions[t]), 0
		if p != 0 {
			zeros = bits.TrailingZeros64(p)
		}
		dst = binary.AppendUvarint(append(dst, byte(zeros)), p>>zeros)
	}
	return dst
}

func (r *reader) copies() []assign.Copy {
	tasks := r.taskSet()
	if len(tasks) == 0 {
		return nil
	}
	out := make([]assign.Copy, len(tasks))
	for i, t := range tasks {
		zeros := r.byte()
		m := r.uvarint()
		if zeros > 62 || m > math.MaxInt64>>zeros {
			r.fail("position is out of range")
		}
		if r.err != nil {
			return nil
		}
		out[i] = assign.Copy{Task: t, Position: int64(m << zeros)}
	}
	return out
}

// uuidLen is the length of a UUID as text. Kafka makes member ids of the client id, "-" and a UUID; the
// UUID travels as 16 bytes and the rest once per list.
const (
	uuidLen = 36

	// maxMemberPrefix bounds the part before the UUID, as each release of a hostile list would repeat it.
	maxMemberPrefix = 256
)

// splitMemberID returns the parts of a member id; uuid is empty if it does not end in one.
func splitMemberID(id string) (prefix string, uuid []byte) {
	if len(id) < uuidLen {
		return id, nil
	}
	s := id[len(id)-uuidLen:]
	if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, nil
	}
	raw, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	if err != nil || uuidText(raw) != s { // e.g. upper case
		return id, nil
	}
	return id[:len(id)-uuidLen], raw
}

func uuidText(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func compareReleases(a, b assign.ReleaseID) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Owner, b.Owner))
}

// commonPrefix returns how many bytes the two start with in common.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// appendHandovers appends the number of release identities and, if there are any, a sorted list of texts
// that member ids start with (each as the number of bytes it has in common with the one before, and the
// rest), then for each identity its generation, its owner (an index into the list, doubled, plus one if a
// UUID follows) and the set of tasks.
func appendHandovers(dst []byte, handovers []assign.Handover) []byte {
	byRelease := make(map[assign.ReleaseID][]assign.TaskID)
	for _, h := range handovers {
		if isTask(h.Task) {
			byRelease[h.Release] = append(byRelease[h.Release], h.Task)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(byRelease)))
	if len(byRelease) == 0 {
		return dst
	}
	releases := slices.SortedFunc(maps.Keys(byRelease), compareReleases)
	index := make(map[string]int)
	for _, id := range releases {
		prefix, _ := splitMemberID(id.Owner)
		index[prefix] = 0
	}
	dst = binary.AppendUvarint(dst, uint64(len(index)))
	before := ""
	for i, prefix := range slices.Sorted(maps.Keys(index)) {
		index[prefix] = i
		same := commonPrefix(before, prefix)
		dst = appendString(binary.AppendUvarint(dst, uint64(same)), prefix[same:])
		before = prefix
	}
	for _, id := range releases {
		dst = binary.AppendVarint(dst, int64(id.Generation))
		prefix, uuid := splitMemberID(id.Owner)
		ref := uint64(index[prefix]) << 1
		if uuid != nil {
			ref |= 1
		}
		dst = append(binary.AppendUvarint(dst, ref), uuid...)
		dst = appendTasks(dst, byRelease[id])
	}
	return dst
}

// handovers reads what appendHandovers wrote; the result is in order of task.
func (r *reader) handovers() []assign.Handover {
	n := r.number(uint64(len(r.b)), "number of releases")
	if n == 0 {
		return nil
	}
	prefixes := make([]string, 0, min(n, 16))
	before := ""
	for k := r.number(n, "number of member id prefixes"); k > 0 && r.err == nil; k-- {
		same := r.number(uint64(len(before)), "length of a common prefix")
		rest := r.string()
		if int(same)+len(rest) > maxMemberPrefix {
			r.fail("member id prefix of %d bytes", int(same)+len(rest))
			return nil
		}
		before = before[:same] + rest
		prefixes = append(prefixes, before)
	}
	var out []assign.Handover
	for first := n; n > 0 && r.err == nil; n-- {
		generation := r.varint()
		if generation != int64(int32(generation)) {
			r.fail("generation is out of range")
		}
		ref := r.uvarint()
		if ref>>1 >= uint64(len(prefixes)) {
			r.fail("no prefix %d for a member id", ref>>1)
			return nil
		}
		id := assign.ReleaseID{Generation: int32(generation), Owner: prefixes[ref>>1]}
		if ref&1 == 1 {
			if uuid := r.bytes(16); uuid != nil {
				id.Owner += uuidText(uuid)
			}
		}
		if n < first && compareReleases(out[len(out)-1].Release, id) >= 0 {
			r.fail("releases are not in order")
		}
		tasks := r.taskSet()
		if len(tasks) == 0 {
			r.fail("release of nothing")
		}
		for _, t := range tasks {
			out = append(out, assign.Handover{Task: t, Release: id})
		}
	}
	if r.err != nil {
		return nil
	}
	slices.SortStableFunc(out, func(a, b assign.Handover) int { return a.Task.Compare(b.Task) })
	return out
}
