package group

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// leader is the part of a member that plans rounds when the coordinator makes it the leader. It keeps
// nothing from one round to the next.
type leader struct {
	group  string
	subs   []Subtopology
	tasks  []assign.Task
	policy assign.Policy
	racks  func(topic string, partition int32) []string // nil: not known
	limit  int                                          // bytes of the group's record
	logger *slog.Logger
}

// plan makes the assignments of a round, one for every member.
//
// A member whose report cannot be read counts as one that claims nothing, and is told to do nothing. What
// it runs is given to others at once, as if it had been expelled: its next sync tells it to stop, and from
// this generation on the coordinator refuses its commits. To spare its tasks instead would idle for good
// those that it does not have.
func (l *leader) plan(generation int32, members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	in := assign.Input{Generation: generation, Tasks: l.tasks, Policy: l.policy}
	var record []recordMember
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if seen[m.MemberID] { // no coordinator should list a member twice
			l.logger.Error("the coordinator lists a member twice, the first entry counts", "member", m.MemberID, "generation", generation)
			continue
		}
		seen[m.MemberID] = true
		record = append(record, recordMember{id: m.MemberID, clientID: clientIDLen(m.MemberID), subscription: len(m.ProtocolMetadata)})
		report, err := decodeSubscription(m.ProtocolMetadata)
		if prefix, _ := splitMemberID(m.MemberID); err == nil && len(prefix) > maxMemberPrefix {
			err = fmt.Errorf("client id of %d bytes: plans cannot name it", len(prefix)) // as an owner that releases
		}
		if err != nil {
			l.logger.Error("a member's report cannot be read: it gets no tasks; run the same version of streamworker everywhere",
				"member", m.MemberID, "generation", generation, "error", err)
			continue
		}
		in.Members = append(in.Members, assign.Member{ID: m.MemberID, Report: report})
	}
	for _, c := range assign.Conflicts(in) {
		l.logger.Warn(c.String(), "generation", generation)
	}
	if l.racks != nil {
		in.Tasks = racksOf(l.tasks, l.subs, l.racks)
	}
	out, saved, size := fit(l.limit, l.group, l.subs, in, record)
	l.logSaving(generation, saved, size)

	assignments := make([]kmsg.SyncGroupRequestGroupAssignment, len(record))
	for i := range record {
		assignments[i] = kmsg.NewSyncGroupRequestGroupAssignment()
		assignments[i].MemberID, assignments[i].MemberAssignment = record[i].id, out[i]
	}
	return assignments
}

func (l *leader) logSaving(generation int32, saved saving, size int) {
	var level slog.Level
	var text string
	switch {
	case size > l.limit:
		level, text = slog.LevelError, "the group's record is too large: Kafka may refuse this round; run fewer instances, "+
			"shorten labels and topic names, or raise max.message.bytes of __consumer_offsets"
	case saved == savedMoves:
		level, text = slog.LevelError, "the group's record would be too large: tasks stay where they are; run fewer instances or shorten labels"
	case saved == savedStandbys:
		level, text = slog.LevelWarn, "the group's record would be too large: no standby copies in this round"
	case saved == savedPartitions:
		level, text = slog.LevelWarn, "the group's record would be too large: Kafka's tools will not show the members' partitions"
	default:
		level, text = slog.LevelDebug, "planned a round"
	}
	l.logger.Log(context.Background(), level, text, "generation", generation, "record_bytes", size, "limit_bytes", l.limit)
}

// balancer gives reports to kgo and takes plans from it. kgo calls it on the one goroutine that manages the
// group.
type balancer struct {
	leader *leader
	join   func() []byte               // the subscription for a join
	synced func(assigned []byte) error // the assignment from a sync
}

var _ kgo.GroupBalancer = (*balancer)(nil)

func (*balancer) ProtocolName() string { return ProtocolName }

// IsCooperative is true: nothing is given up before a join, and the group's other members are heard
// sooner (kgo sends the first heartbeat after half a second).
func (*balancer) IsCooperative() bool { return true }

func (b *balancer) JoinGroupMetadata([]string, map[string][]int32, int32) []byte { return b.join() }

// ParseSyncAssignment hands the plan over and tells kgo that it has no partitions: so kgo never fetches,
// revokes, commits or rejoins by itself.
func (b *balancer) ParseSyncAssignment(assigned []byte) (map[string][]int32, error) {
	return map[string][]int32{}, b.synced(assigned)
}

func (b *balancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	return &round{leader: b.leader, members: members}, nil, nil // no topics: kgo need not ask for their partitions
}

// round is one balancing. kgo sets its generation before it balances.
type round struct {
	leader     *leader
	members    []kmsg.JoinGroupResponseMember
	generation int32
}

var _ kgo.GroupMemberBalancerInfo = (*round)(nil)

func (r *round) SetBalanceInfo(info kgo.BalanceInfo) { r.generation = info.Generation }

func (r *round) Balance(map[string]int32) kgo.IntoSyncAssignment {
	return syncAssignment(r.leader.plan(r.generation, r.members))
}

type syncAssignment []kmsg.SyncGroupRequestGroupAssignment

func (s syncAssignment) IntoSyncAssignment() []kmsg.SyncGroupRequestGroupAssignment { return s }
