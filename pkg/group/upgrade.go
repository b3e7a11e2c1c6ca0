package group

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// A group of plain consumers becomes one of streamworker member by member. Meanwhile our members offer the group's
// former protocol beside ours. Kafka has a group speak what all its members offer; ours is offered first, so the group
// speaks it from the round on in which the last plain consumer is gone.
//
// A member does not know at a join which protocol the round will speak. So it must be ready for either: under an eager
// protocol it gives up what it runs before the join, as every consumer does that offers one; under the cooperative one
// it claims what it runs, and gives up afterwards what it was not assigned again.

// plainProtocols are the protocols of plain consumers that can be offered beside ours.
var plainProtocols = []kgo.GroupBalancer{
	kgo.RangeBalancer(), kgo.RoundRobinBalancer(), kgo.StickyBalancer(), kgo.CooperativeStickyBalancer(),
}

// plainProtocol finds one by its name; nil: there is none.
func plainProtocol(name string) kgo.GroupBalancer {
	for _, b := range plainProtocols {
		if b.ProtocolName() == name {
			return b
		}
	}
	return nil
}

// Yields says whether a member that offers these protocols beside ours must not run anything when it joins, as one of them
// is eager.
func Yields(upgradeFrom []string) bool {
	return slices.ContainsFunc(upgradeFrom, func(name string) bool {
		b := plainProtocol(name)
		return b != nil && !b.IsCooperative()
	})
}

// plainBalancer offers a protocol of plain consumers. As a leader it balances as kgo does; what is assigned goes to the
// tasks, not to kgo.
type plainBalancer struct {
	kgo.GroupBalancer
	m *Membership
}

// IsCooperative is true as for our own balancer: what has to stop, and when, is not kgo's business here.
func (plainBalancer) IsCooperative() bool { return true }

// JoinGroupMetadata is called after that of our own balancer, which is the first.
func (b plainBalancer) JoinGroupMetadata(_ []string, _ map[string][]int32, generation int32) []byte {
	topics, owned := b.m.plainSubscription(b.GroupBalancer.IsCooperative())
	return b.GroupBalancer.JoinGroupMetadata(topics, owned, generation)
}

func (b plainBalancer) ParseSyncAssignment(assigned []byte) (map[string][]int32, error) {
	return map[string][]int32{}, b.m.plainSynced(b.ProtocolName(), assigned)
}

// balancers are what the kgo client offers, ours first.
func (m *Membership) balancers(own *balancer) []kgo.GroupBalancer {
	list := []kgo.GroupBalancer{own}
	for _, name := range m.cfg.UpgradeFrom {
		list = append(list, plainBalancer{plainProtocol(name), m})
	}
	return list
}

// yield has the tasks finish what must not go on behind the end of the round that is about to be joined: all that runs,
// if that round may speak an eager protocol, else only releases under way. The coordinator takes commits until all have
// joined.
func (m *Membership) yield(ended <-chan struct{}) {
	if len(m.cfg.UpgradeFrom) == 0 {
		return
	}
	all := Yields(m.cfg.UpgradeFrom)
	done := make(chan struct{})
	m.handler.Revoke(func(assign.TaskID) bool { return all }, sync.OnceFunc(func() { close(done) }))
	patience := time.NewTimer(m.cfg.RebalanceTimeout / 2)
	defer patience.Stop()
	select {
	case <-done:
	case <-ended:
	case <-patience.C:
		m.cfg.Logger.Warn("tasks could not be given up in time before a rebalance: what they have not committed is processed again",
			"waited", (m.cfg.RebalanceTimeout / 2).String())
	}
}

// plainSubscription is what a join says under a protocol of plain consumers: the topics, none of them if the instance
// leaves, and the partitions that it has.
func (m *Membership) plainSubscription(cooperative bool) (topics []string, owned map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.leaving {
		topics = slices.Clone(m.topics)
	}
	tasks := m.mu.claimed
	if !cooperative {
		tasks = m.mu.told // given up by now; the sticky protocol likes to give it back
	}
	owned = make(map[string][]int32)
	for _, t := range partitionsOf(m.cfg.Subtopologies, tasks) {
		owned[t.Topic] = t.Partitions
	}
	return topics, owned
}

// claims notes what a report claims, for the protocols of plain consumers. m.mu must be held.
func (m *Membership) claims(r assign.Report) {
	m.mu.leaving, m.mu.claimed = r.Leaving, nil
	if Yields(m.cfg.UpgradeFrom) {
		return // all of it was given up
	}
	m.mu.claimed = slices.Clone(r.Owned)
	for _, h := range r.Releasing { // without a verdict on its release
		m.mu.claimed = append(m.mu.claimed, h.Task)
	}
}

// plainSynced takes the assignment of a round that spoke a protocol of plain consumers.
func (m *Membership) plainSynced(protocol string, assigned []byte) error {
	var partitions map[string][]int32
	var err error
	if len(assigned) > 0 { // else the leader has left this member out
		if partitions, err = kgo.ParseConsumerSyncAssignment(assigned); err != nil {
			err = fmt.Errorf("assignment by %s: %w: %w", protocol, ErrForeign, err)
		}
	}
	own, parted := tasksOfPartitions(m.cfg.Subtopologies, partitions)
	return m.admit(protocol, err, func(id string, generation int32) {
		for _, t := range parted {
			m.cfg.Logger.Error("a task stands still, as only a part of its input partitions was assigned to this instance: its topics need the protocol range, "+
				"and other consumers of the group that subscribe to all of them or to none; stop those, so that the group speaks streamworker",
				"task", t.String(), "protocol", protocol, "generation", generation)
		}
		m.mu.Lock()
		lost := slices.DeleteFunc(m.mu.claimed, func(t assign.TaskID) bool { return slices.Contains(own, t) })
		m.mu.told, m.mu.claimed = own, nil
		m.mu.Unlock()
		m.cfg.Logger.Debug("assignment received", "member", id, "generation", generation, "protocol", protocol, "own", len(own), "lost", len(lost))
		// What is lost was not assigned to others yet, as it was claimed.
		m.handler.Assigned(id, generation, slices.Concat(own, lost))
		if len(lost) > 0 {
			m.handler.Revoke(func(t assign.TaskID) bool { return slices.Contains(lost, t) }, m.ForceRound)
		}
	})
}

// tasksOfPartitions are the tasks of which all partitions are assigned, and those of which only some are.
func tasksOfPartitions(subs []Subtopology, partitions map[string][]int32) (own, parted []assign.TaskID) {
	has := make(map[TopicPartition]bool)
	for topic, list := range partitions {
		for _, p := range list {
			has[TopicPartition{topic, p}] = true
		}
	}
	for _, t := range tasksOf(subs) {
		i := slices.IndexFunc(subs, func(s Subtopology) bool { return s.ID == t.ID.Subtopology })
		n := 0
		for _, topic := range subs[i].Topics {
			if has[TopicPartition{topic, t.ID.Partition}] {
				n++
			}
		}
		switch {
		case n == 0:
		case n == len(subs[i].Topics):
			own = append(own, t.ID)
		default:
			parted = append(parted, t.ID)
		}
	}
	return own, parted
}
