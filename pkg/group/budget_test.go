package group

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// memberID is one as Kafka makes it.
func memberID(client string, i int) string {
	return fmt.Sprintf("%s-%08x-9c1b-4f0e-8a44-%012x", client, uint32(i)*2654435761, i*40503)
}

// largeGroup has 1,000 members with ten of 10,000 tasks each, as they are after years of moves: scattered.
func largeGroup(topics ...string) ([]Subtopology, assign.Input) {
	const members, tasks = 1000, 10_000
	subs := []Subtopology{{ID: 0, Topics: topics, Partitions: tasks, Stateful: true}}
	in := assign.Input{Generation: 1 << 20, Tasks: tasksOf(subs)}
	for i := range members {
		m := assign.Member{ID: memberID(fmt.Sprintf("streamworker-orders-worker-%04d", i), i), Report: assign.Report{
			Instance:    fmt.Sprintf("orders-worker-%04d", i),
			Incarnation: assign.Incarnation{StartMs: 1_790_000_000_000 + int64(i), Random: uint64(i) * 0x9e3779b97f4a7c15},
			Capacity:    4,
			Labels:      map[string]string{"pool": "blue", "zone": "eu-central-1a"},
			Rack:        "eu-central-1a",
			ConfigHash:  0x9e3779b97f4a7c15,
			Nonce:       uint32(i),
		}}
		for k := range tasks / members {
			m.Owned = append(m.Owned, task(0, int32(k*members+i*7919%members)))
		}
		in.Members = append(in.Members, m)
	}
	return subs, in
}

// The design's promise for the record in which Kafka keeps the group.
func TestRecordOfALargeGroup(t *testing.T) {
	for _, c := range []struct {
		name   string
		topics []string
		most   int
	}{
		{"one input topic", []string{"orders"}, 400 << 10},
		{"four input topics", []string{"orders", "payments", "shipments", "customers"}, 700 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			subs, in := largeGroup(c.topics...)
			size := RecordSize("orders", subs, in.Members, assign.Assign(in))
			t.Logf("%d members, %d tasks: %d KiB", len(in.Members), len(in.Tasks), size>>10)
			if size > c.most {
				t.Errorf("%d bytes, want at most %d", size, c.most)
			}
		})
	}
}

// The worst that a large group is expected to do: half of it leaves at once, and all its 5,000 tasks are
// handed over in one round, each taker having ten owners to take from.
func TestRecordOfALargeGroupThatMoves(t *testing.T) {
	subs, in := largeGroup("orders")
	half := len(in.Members) / 2
	for i := range half {
		leaver, taker := &in.Members[i], &in.Members[half+i]
		leaver.Leaving, leaver.DeadlineMs = true, 1_790_000_600_000
		for k := range 10 {
			from := in.Members[(i+k*37)%half]
			copied := assign.Copy{Task: from.Owned[k], Position: int64(200+i%50) << 20}
			taker.Learning = append(taker.Learning, copied)
			taker.Ready = append(taker.Ready, copied.Task)
		}
	}
	plan := assign.Assign(in)
	moves := 0
	for _, p := range plan {
		moves += len(p.Take)
	}
	size := RecordSize("orders", subs, in.Members, plan)
	t.Logf("%d handovers in one round: %d KiB", moves, size>>10)
	if moves != 10*half || size > recordLimit {
		t.Errorf("%d handovers, want %d; %d bytes, want at most %d", moves, 10*half, size, recordLimit)
	}
}

// The size is computed, not encoded; here against the encoding.
func TestRecordSizeIsExact(t *testing.T) {
	subs, in := largeGroup("orders")
	in.Members = in.Members[:20]
	plan := assign.Assign(in)
	group, protocol, leader := "some-group", ProtocolName, in.Members[3].ID
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Protocol, v.Leader = 3, protocolType, &protocol, &leader
	for _, m := range in.Members {
		gm := kmsg.NewGroupMetadataValueMember()
		gm.MemberID, gm.ClientID, gm.ClientHost = m.ID, "streamworker-"+m.Instance, "/255.255.255.255"
		gm.Subscription = encodeSubscription(topicsOf(subs), m.Report)
		gm.Assignment = encodeAssignment(subs, plan[m.ID], true)
		v.Members = append(v.Members, gm)
	}
	key := kmsg.NewGroupMetadataKey()
	key.Version, key.Group = 2, group
	const batch = 61 + 16
	if got, want := RecordSize(group, subs, in.Members, plan), len(v.AppendTo(nil))+len(key.AppendTo(nil))+batch; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// joined is the group as its leader gets it.
func joined(subs []Subtopology, in assign.Input) []kmsg.JoinGroupResponseMember {
	var out []kmsg.JoinGroupResponseMember
	for _, m := range in.Members {
		jm := kmsg.NewJoinGroupResponseMember()
		jm.MemberID, jm.ProtocolMetadata = m.ID, encodeSubscription(topicsOf(subs), m.Report)
		out = append(out, jm)
	}
	return out
}

// assignments are what a leader decided, decoded.
type assignments map[string]struct {
	plan   assign.MemberPlan
	topics []kmsg.ConsumerMemberAssignmentTopic
}

func decodeAll(t *testing.T, as []kmsg.SyncGroupRequestGroupAssignment) assignments {
	t.Helper()
	out := assignments{}
	for _, a := range as {
		entry := out[a.MemberID]
		var err error
		if entry.plan, err = decodeAssignment(a.MemberAssignment); err != nil {
			t.Fatal(err)
		}
		ca := kmsg.NewConsumerMemberAssignment()
		if err := ca.ReadFrom(a.MemberAssignment); err != nil {
			t.Fatal(err)
		}
		entry.topics = ca.Topics
		out[a.MemberID] = entry
	}
	return out
}

func newLeader(subs []Subtopology, policy assign.Policy, log *strings.Builder) *leader {
	return &leader{group: "g", subs: subs, tasks: tasksOf(subs), policy: policy, limit: recordLimit,
		logger: slog.New(slog.NewTextHandler(log, nil))}
}

// Near the limit the leader leaves out what is optional, in order, then moves nothing.
func TestLeaderSavesNearTheLimit(t *testing.T) {
	subs := []Subtopology{{ID: 0, Topics: []string{"in"}, Partitions: 40, Stateful: true}}
	in := assign.Input{Generation: 7, Tasks: tasksOf(subs)}
	for i := range 4 {
		m := assign.Member{ID: memberID("c", i), Report: assign.Report{Instance: fmt.Sprint(i), Capacity: 1}}
		for p := int32(i); p < 40; p += 4 {
			m.Owned = append(m.Owned, task(0, p))
		}
		in.Members = append(in.Members, m)
	}
	// Member 3 leaves; a learner of member 0 is ready for one of its tasks.
	in.Members[3].Leaving = true
	in.Members[0].Learning = []assign.Copy{{Task: task(0, 39)}}
	in.Members[0].Ready = []assign.TaskID{task(0, 39)}
	policy := assign.Policy{BalancingFactor: 2, Standbys: 1}

	count := func(as assignments) (partitions, standbys, moves, owned int) {
		for _, a := range as {
			for _, topic := range a.topics {
				partitions += len(topic.Partitions)
			}
			standbys += len(a.plan.Standby)
			moves += len(a.plan.Take) + len(a.plan.Learn)
			owned += len(a.plan.Own) + len(a.plan.Take)
		}
		return
	}
	var previous int
	for _, c := range []struct {
		saved                       saving
		partitions, standbys, moves bool
		log                         string
	}{
		{savedNothing, true, true, true, ""},
		{savedPartitions, false, true, true, "will not show the members' partitions"},
		{savedStandbys, false, false, true, "no standby copies"},
		{savedMoves, false, false, false, "tasks stay where they are"},
		{savedMoves, false, false, false, "Kafka may refuse"},
	} {
		var log strings.Builder
		l := newLeader(subs, policy, &log)
		if previous > 0 {
			l.limit = previous - 1 // what the saving before made is just too large
		}
		full := in
		full.Policy = policy
		record := make([]recordMember, len(in.Members))
		for i, m := range joined(subs, in) {
			record[i] = recordMember{id: m.MemberID, clientID: 1, subscription: len(m.ProtocolMetadata)}
		}
		limit := 1 << 20
		if previous > 0 {
			limit = previous - 1
		}
		_, saved, size := fit(limit, "g", subs, full, record)
		if saved != c.saved {
			t.Fatalf("limit %d: saved %d, want %d", limit, saved, c.saved)
		}
		previous = size

		as := decodeAll(t, l.plan(in.Generation, joined(subs, in)))
		partitions, standbys, moves, owned := count(as)
		if partitions > 0 != c.partitions || standbys > 0 != c.standbys || moves > 0 != c.moves {
			t.Errorf("limit %d: %d partitions, %d standbys, %d moves", limit, partitions, standbys, moves)
		}
		if owned != 40 {
			t.Errorf("limit %d: %d of 40 tasks have a runner", limit, owned)
		}
		if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
			t.Errorf("limit %d: log %q, want %q", limit, log.String(), c.log)
		}
	}
}

// Holding still completes what has begun: a release without its take would stop the task.
func TestHoldStillKeepsHandoversUnderWay(t *testing.T) {
	release := assign.ReleaseID{Generation: 6, Owner: "a"}
	in := holdStill(assign.Input{
		Generation: 7,
		Tasks:      []assign.Task{{ID: task(0, 0), Stateful: true}, {ID: task(0, 1), Stateful: true}},
		Members: []assign.Member{
			{ID: "a", Report: assign.Report{Instance: "a", Leaving: true, DeadlineMs: 5,
				Releasing: []assign.Handover{{Task: task(0, 0), Release: release}}}},
			{ID: "b", Report: assign.Report{Instance: "b",
				Taking: []assign.Handover{{Task: task(0, 0), Release: release}}}},
		},
	})
	plan := assign.Assign(in)
	want := []assign.Handover{{Task: task(0, 0), Release: release}}
	if !slices.Equal(plan["a"].Release, want) || !slices.Equal(plan["b"].Take, want) {
		t.Errorf("got %+v", plan)
	}
	if len(plan["a"].Own)+len(plan["b"].Own) != 1 {
		t.Errorf("the unclaimed task is not given out: %+v", plan)
	}
}
