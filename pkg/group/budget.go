package group

import (
	"math"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// recordLimit is where the leader starts to save, in bytes. Kafka keeps a whole group, all subscriptions
// and assignments, in one record, and refuses one over 1 MiB (max.message.bytes of __consumer_offsets):
// then no round would succeed. The distance covers what the leader cannot see, as host names.
const recordLimit = 900 << 10

// hostLen is the assumed length of the address that Kafka notes for each member: "/255.255.255.255".
const hostLen = 16

// recordMember is what counts of a member in the group's record.
type recordMember struct {
	id                       string
	clientID                 int // length
	subscription, assignment int // lengths
}

// recordSize returns the bytes of the record in which Kafka keeps the group, with its batch: the key, then
// GroupMetadataValue in version 3, the largest in use.
func recordSize(group string, members []recordMember) int {
	const (
		batch = 61 + 16 // header of the batch and of the one record in it
		fixed = 2 + 4 + 8 + 4
		each  = 2 + 4 + 4 // no instance id, two timeouts
	)
	text := func(n int) int { return 2 + n }
	size := batch + 2 + text(len(group)) + fixed + text(len(protocolType)) + text(len(ProtocolName))
	leader := 0
	for _, m := range members {
		leader = max(leader, len(m.id))
		size += each + text(len(m.id)) + text(m.clientID) + text(hostLen) + 4 + m.subscription + 4 + m.assignment
	}
	return size + text(leader)
}

// clientIDLen returns the length of the client id of which Kafka made a member id.
func clientIDLen(memberID string) int {
	prefix, _ := splitMemberID(memberID)
	return len(strings.TrimSuffix(prefix, "-"))
}

// RecordSize returns the bytes of the record in which Kafka would keep the group after a round with these
// reports and this plan.
func RecordSize(group string, subs []Subtopology, members []assign.Member, plan assign.Plan) int {
	topics := topicsOf(subs)
	record := make([]recordMember, len(members))
	for i, m := range members {
		record[i] = recordMember{
			id:           m.ID,
			clientID:     clientIDLen(m.ID),
			subscription: len(encodeSubscription(topics, m.Report)),
			assignment:   len(encodeAssignment(subs, plan[m.ID], true)),
		}
	}
	return recordSize(group, record)
}

// saving says what a leader has left out to keep the group's record small; each includes those before it.
type saving int

const (
	savedNothing    saving = iota
	savedPartitions        // the partitions of the assignments, which only Kafka's tools read
	savedStandbys          // standby copies
	savedMoves             // everything new: tasks stay where they are
)

// holdStill returns the reports as if nobody wanted anything: nobody leaves, no learner is ready or stuck, nothing
// is balanced. The plan for them keeps every task where it is, completes handovers that have begun and
// gives out what nobody claims. It is the nearest to the old plan, which the leader does not have.
func holdStill(in assign.Input) assign.Input {
	members := make([]assign.Member, len(in.Members))
	for i, m := range in.Members {
		m.Leaving, m.DeadlineMs, m.Ready, m.Stuck = false, 0, nil, nil
		members[i] = m
	}
	in.Members = members
	in.Policy.BalancingFactor = math.MaxInt32
	in.Policy.Standbys = 0
	return in
}

// fit encodes the plan for these reports so that the group's record stays within limit bytes, leaving out
// no more than needed. The record is larger than limit all the same if the size returned says so. record
// holds the members as the coordinator knows them; the result has an assignment for each, in order.
func fit(limit int, group string, subs []Subtopology, in assign.Input, record []recordMember) ([][]byte, saving, int) {
	plan := assign.Assign(in)
	for s := savedNothing; ; s++ {
		if s == savedStandbys {
			for id, p := range plan {
				p.Standby = nil
				plan[id] = p
			}
		}
		if s == savedMoves {
			plan = assign.Assign(holdStill(in))
		}
		out := make([][]byte, len(record))
		for i := range record {
			// A member that is not in the plan, as its report cannot be read, is told to do nothing.
			out[i] = encodeAssignment(subs, plan[record[i].id], s < savedPartitions)
			record[i].assignment = len(out[i])
		}
		if size := recordSize(group, record); size <= limit || s == savedMoves {
			return out, s, size
		}
	}
}
