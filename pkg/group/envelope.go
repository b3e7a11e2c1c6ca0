package group

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// ProtocolName is the name under which members offer their reports to the group.
const ProtocolName = "streamworker"

// protocolType makes the group one of consumers, for Kafka's tools and for upgrades in place.
const protocolType = "consumer"

// Subtopology is a part of the topology whose tasks are its partitions.
type Subtopology struct {
	ID         int32
	Topics     []string // what its tasks consume: input and repartition topics, co-partitioned
	Partitions int32    // number of its tasks
	Stateful   bool
}

// tasksOf lists the tasks of all subtopologies, in order.
func tasksOf(subs []Subtopology) []assign.Task {
	var out []assign.Task
	for _, s := range subs {
		for p := range s.Partitions {
			out = append(out, assign.Task{ID: assign.TaskID{Subtopology: s.ID, Partition: p}, Stateful: s.Stateful})
		}
	}
	slices.SortFunc(out, func(a, b assign.Task) int { return a.ID.Compare(b.ID) })
	return out
}

// racksOf sets the racks that have replicas of all input partitions of each task, asking which those of a partition are.
func racksOf(tasks []assign.Task, subs []Subtopology, of func(topic string, partition int32) []string) []assign.Task {
	topics := make(map[int32][]string, len(subs))
	for _, s := range subs {
		topics[s.ID] = s.Topics
	}
	tasks = slices.Clone(tasks)
	for i := range tasks {
		t := &tasks[i]
		for n, topic := range topics[t.ID.Subtopology] {
			racks := of(topic, t.ID.Partition)
			if n == 0 {
				t.Racks = racks
				continue
			}
			t.Racks = slices.DeleteFunc(slices.Clone(t.Racks), func(rack string) bool { return !slices.Contains(racks, rack) })
		}
	}
	return tasks
}

// topicsOf lists the topics of all subtopologies, in order, each once.
func topicsOf(subs []Subtopology) []string {
	var out []string
	for _, s := range subs {
		out = append(out, s.Topics...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// encodeSubscription puts a report into a ConsumerProtocol subscription. It names all topics: Kafka
// expires the offsets of topics that no member subscribes to. It claims no partitions: what a member
// owns is in the report.
func encodeSubscription(topics []string, r assign.Report) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version = 1
	m.Topics = topics
	m.UserData = EncodeReport(r)
	return m.AppendTo(nil)
}

func decodeSubscription(b []byte) (assign.Report, error) {
	m := kmsg.NewConsumerMemberMetadata()
	if err := m.ReadFrom(b); err != nil {
		return assign.Report{}, fmt.Errorf("subscription: %w: %w", ErrForeign, err)
	}
	return DecodeReport(m.UserData)
}

// partitionsOf lists the partitions that the tasks consume: by topic, in order.
func partitionsOf(subs []Subtopology, tasks []assign.TaskID) []kmsg.ConsumerMemberAssignmentTopic {
	bySub := make(map[int32][]int32)
	for _, t := range tasks {
		bySub[t.Subtopology] = append(bySub[t.Subtopology], t.Partition)
	}
	byTopic := make(map[string][]int32)
	for _, s := range subs {
		for _, topic := range s.Topics {
			byTopic[topic] = append(byTopic[topic], bySub[s.ID]...)
		}
	}
	var out []kmsg.ConsumerMemberAssignmentTopic
	for _, topic := range topicsOf(subs) {
		if parts := byTopic[topic]; len(parts) > 0 {
			slices.Sort(parts)
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic, t.Partitions = topic, slices.Compact(parts)
			out = append(out, t)
		}
	}
	return out
}

// encodeAssignment puts what a member is told into a ConsumerProtocol assignment. Its partitions are those
// of the tasks that the member runs or is about to take; they are for Kafka's tools, no member reads them.
func encodeAssignment(subs []Subtopology, p assign.MemberPlan, partitions bool) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	if partitions {
		tasks := slices.Clone(p.Own)
		for _, h := range p.Take {
			tasks = append(tasks, h.Task)
		}
		a.Topics = partitionsOf(subs, tasks)
	}
	a.UserData = EncodePlan(p)
	return a.AppendTo(nil)
}

func decodeAssignment(b []byte) (assign.MemberPlan, error) {
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(b); err != nil {
		return assign.MemberPlan{}, fmt.Errorf("assignment: %w: %w", ErrForeign, err)
	}
	return DecodePlan(a.UserData)
}
