package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Kafka's tools show the partitions of the tasks that a member runs or is about to take, for all topics.
func TestAssignmentShowsPartitions(t *testing.T) {
	subs := []Subtopology{
		{ID: 0, Topics: []string{"b", "a"}, Partitions: 4},
		{ID: 1, Topics: []string{"a", "c"}, Partitions: 2, Stateful: true},
	}
	b := encodeAssignment(subs, assign.MemberPlan{
		Own:   []assign.TaskID{task(0, 3), task(1, 0)},
		Take:  []assign.Handover{{Task: task(0, 0), Release: assign.ReleaseID{Generation: 1, Owner: "x"}}},
		Learn: []assign.TaskID{task(1, 1)},
	}, true)
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, topic := range a.Topics {
		got = append(got, fmt.Sprint(topic.Topic, topic.Partitions))
	}
	if want := []string{"a[0 3]", "b[0 3]", "c[0]"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The subscription names every topic, or the offsets of the others would expire, and claims nothing.
func TestSubscriptionIsAConsumers(t *testing.T) {
	m := kmsg.NewConsumerMemberMetadata()
	if err := m.ReadFrom(encodeSubscription([]string{"a", "b"}, fullReport())); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Topics, []string{"a", "b"}) || len(m.OwnedPartitions) != 0 {
		t.Errorf("got %+v", m)
	}
}

func TestLeaderAndUnreadableMembers(t *testing.T) {
	subs := []Subtopology{{ID: 0, Topics: []string{"in"}, Partitions: 6, Stateful: true}}
	member := func(id string, metadata []byte) kmsg.JoinGroupResponseMember {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.ProtocolMetadata = id, metadata
		return m
	}
	foreign := kmsg.NewConsumerMemberMetadata()
	foreign.Topics, foreign.UserData = []string{"in"}, []byte("sticky")
	newer := EncodeReport(assign.Report{Instance: "n", Owned: []assign.TaskID{task(0, 1)}})
	newer[1]++
	fromTheFuture := kmsg.NewConsumerMemberMetadata()
	fromTheFuture.UserData = newer

	var log strings.Builder
	l := newLeader(subs, assign.Policy{BalancingFactor: 2}, &log)
	good := encodeSubscription([]string{"in"}, assign.Report{Instance: "g", Capacity: 1, Owned: []assign.TaskID{task(0, 0)}})
	as := decodeAll(t, l.plan(3, []kmsg.JoinGroupResponseMember{
		member("foreign", foreign.AppendTo(nil)),
		member("garbage", []byte{0xff, 1, 2}),
		member("good", good),
		member("good", nil),
		member("newer", fromTheFuture.AppendTo(nil)),
		member(strings.Repeat("x", maxMemberPrefix+1), good),
	}))
	if len(as) != 5 {
		t.Errorf("%d assignments, want one for each of 5 members", len(as))
	}
	for id, a := range as {
		want := 0
		if id == "good" {
			want = 6
		}
		if len(a.plan.Own) != want || len(a.plan.Take)+len(a.plan.Release)+len(a.plan.Learn) > 0 {
			t.Errorf("%s is told %+v", id, a.plan)
		}
	}
	for _, want := range []string{"member=foreign", "member=garbage", "member=newer", "another version", "lists a member twice"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}

// Each task goes to the member in whose rack all its input is.
func TestLeaderKnowsRacks(t *testing.T) {
	subs := []Subtopology{{ID: 0, Topics: []string{"clicks", "users"}, Partitions: 4, Stateful: true}}
	var log strings.Builder
	l := newLeader(subs, assign.Policy{BalancingFactor: 2}, &log)
	l.racks = func(topic string, partition int32) []string {
		if topic == "users" {
			return []string{"a", "b"}
		}
		return [][]string{{"a"}, {"b"}, {"b"}, {"a"}}[partition]
	}
	var members []kmsg.JoinGroupResponseMember
	for _, rack := range []string{"a", "b"} {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.ProtocolMetadata = "in-"+rack, encodeSubscription(nil, assign.Report{Instance: rack, Capacity: 1, Rack: rack})
		members = append(members, m)
	}
	as := decodeAll(t, l.plan(1, members))
	for id, want := range map[string][]assign.TaskID{"in-a": {task(0, 0), task(0, 3)}, "in-b": {task(0, 1), task(0, 2)}} {
		if got := as[id].plan.Own; !slices.Equal(got, want) {
			t.Errorf("%s owns %v, want %v", id, got, want)
		}
	}
	if l.tasks[0].Racks != nil {
		t.Error("the racks of one round stay for the next")
	}
}

// The same reports in any order give the same bytes.
func TestLeaderIsDeterministic(t *testing.T) {
	subs, in := largeGroup("orders")
	in.Members = in.Members[:50]
	members := joined(subs, in)
	var log strings.Builder
	l := newLeader(subs, assign.Policy{BalancingFactor: 2, Standbys: 1}, &log)
	first := map[string]string{}
	for _, a := range l.plan(9, members) {
		first[a.MemberID] = string(a.MemberAssignment)
	}
	slices.Reverse(members)
	for _, a := range l.plan(9, members) {
		if first[a.MemberID] != string(a.MemberAssignment) {
			t.Errorf("member %s is told something else", a.MemberID)
		}
	}
}
