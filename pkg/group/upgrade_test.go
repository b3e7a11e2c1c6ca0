package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

func TestTasksOfPartitions(t *testing.T) {
	subs := []Subtopology{
		{ID: 0, Topics: []string{"clicks", "users"}, Partitions: 4},
		{ID: 1, Topics: []string{"clicks"}, Partitions: 4}, // reads one of them as well
	}
	own, parted := tasksOfPartitions(subs, map[string][]int32{"clicks": {0, 1, 7}, "users": {1, 2}, "others": {0}})
	if want := []assign.TaskID{{Subtopology: 0, Partition: 1}, {Subtopology: 1, Partition: 0}, {Subtopology: 1, Partition: 1}}; !slices.Equal(own, want) {
		t.Errorf("own %v, want %v", own, want)
	}
	if want := []assign.TaskID{{Subtopology: 0, Partition: 0}, {Subtopology: 0, Partition: 2}}; !slices.Equal(parted, want) {
		t.Errorf("parted %v, want %v", parted, want)
	}
}

func TestUnknownProtocolToUpgradeFrom(t *testing.T) {
	k := fakeCluster(t)
	cfg := k.config(1, false)
	cfg.Coordinator, cfg.UpgradeFrom = k.coordinator(cfg.Group), []string{"range", "uniform"}
	if _, err := NewMembership(cfg, &instance{}); err == nil {
		t.Error("uniform is a protocol to upgrade from")
	}
}

// plainConsumer joins the group as others do; it consumes nothing.
func (k *cluster) plainConsumer(group string, balancer kgo.GroupBalancer, topics ...string) *kgo.Client {
	k.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...), kgo.ConsumerGroup(group), kgo.Balancers(balancer), kgo.ConsumeTopics(topics...),
		kgo.HeartbeatInterval(100*time.Millisecond), kgo.DisableAutoCommit())
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(cl.Close)
	return cl
}

// assigned are how many partitions of a topic members have in the group's present assignment, as Kafka's tools see it.
func (k *cluster) assigned(group, topic string) int {
	n := 0
	for _, m := range k.describe(group).Members {
		if as, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range as.Topics {
				if t.Topic == topic {
					n += len(t.Partitions)
				}
			}
		}
	}
	return n
}

// A member that leaves subscribes to nothing under the protocols of plain consumers, and so is left nothing.
func TestLeavingAmongPlainConsumers(t *testing.T) {
	for _, balancer := range plainProtocols {
		t.Run(balancer.ProtocolName(), func(t *testing.T) {
			onKafka(t, func(t *testing.T, k *cluster) {
				cfg := k.config(6, false)
				cfg.UpgradeFrom = []string{balancer.ProtocolName()}
				k.plainConsumer(cfg.Group, balancer, cfg.Subtopologies[0].Topics...)
				a, b := k.start(cfg, "a"), k.start(cfg, "b")
				eventually(t, "all three have a third", func() bool { return a.tasks() == 2 && b.tasks() == 2 })
				a.change(func(r *assign.Report) { r.Leaving = true })
				eventually(t, "the others have its tasks", func() bool { return a.tasks() == 0 && b.tasks() == 3 })
				eventually(t, "all partitions have a consumer", func() bool { return k.assigned(cfg.Group, cfg.Subtopologies[0].Topics[0]) == 6 })
				if p := k.describe(cfg.Group).Protocol; p != balancer.ProtocolName() {
					t.Errorf("the group speaks %s", p)
				}
			})
		})
	}
}

// Tasks that read two topics need a partition of each. Where a plain consumer has only one of the topics, range gives
// these partitions to different members: such a task is not run by half.
func TestConsumerOfOneTopicOfTwo(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, false)
		clicks, users := cfg.Subtopologies[0].Topics[0], k.topic(4)
		cfg.Subtopologies[0].Topics = []string{clicks, users}
		cfg.UpgradeFrom = []string{"range"}
		old := k.plainConsumer(cfg.Group, kgo.RangeBalancer(), clicks)
		a := k.start(cfg, "a")
		eventually(t, "it runs the tasks of which it has both partitions", func() bool { return a.tasks() == 2 })
		old.Close()
		eventually(t, "all tasks run when the consumer is gone", func() bool { return a.tasks() == 4 })
		if p := k.describe(cfg.Group).Protocol; p != ProtocolName {
			t.Errorf("the group speaks %s", p)
		}
	})
}

// stuck is a member whose tasks cannot be given up.
type stuck struct{ *instance }

func (stuck) Revoke(func(assign.TaskID) bool, func()) {}

// Tasks that cannot be given up keep a round waiting for half its time, and no longer; the end of the membership does
// not wait for them.
func TestTasksThatCannotBeGivenUp(t *testing.T) {
	k := fakeCluster(t)
	cfg := k.config(2, false)
	cfg.UpgradeFrom, cfg.Coordinator = []string{"range"}, k.coordinator(cfg.Group)
	in := k.newInstance(cfg, "a")
	m, err := NewMembership(in.cfg, stuck{in})
	if err != nil {
		t.Fatal(err)
	}
	in.m = m
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	eventually(t, "the first join waits for the tasks", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.mu.clock.joining
	})
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Run does not end")
	}

	cfg.RebalanceTimeout = 400 * time.Millisecond // twice the wait
	cfg.Group = k.name()
	cfg.Coordinator = k.coordinator(cfg.Group)
	in = k.newInstance(cfg, "b")
	if in.m, err = NewMembership(in.cfg, stuck{in}); err != nil {
		t.Fatal(err)
	}
	in.run()
	eventually(t, "it joins all the same", func() bool { return in.tasks() == 2 })
}

// A member whose build never says that a learner is ready keeps nothing from running: tasks stay with their owner. It takes them over when
// the owner leaves at its timeout.
func TestMemberThatNeverTurnsReady(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a := k.start(cfg, "a")
		eventually(t, "the first has all tasks", func() bool { return settled(4, a) })
		b := k.start(cfg, "b") // of a build that never says ready
		learns := func(n int) func() bool {
			return func() bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				return len(b.learning) == n
			}
		}
		eventually(t, "it learns half of them", learns(2))
		a.change(func(r *assign.Report) { r.Leaving = true })
		eventually(t, "it learns all of them", learns(4))
		if a.tasks() != 4 || b.tasks() != 0 {
			t.Errorf("%d and %d tasks run", a.tasks(), b.tasks())
		}
		if err := a.m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it runs all of them", func() bool { return settled(4, b) })
	})
}

// A report that this build cannot read keeps nobody else from working.
func TestMemberOfANewerBuild(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, false)
		a := k.start(cfg, "a")
		eventually(t, "the first has all tasks", func() bool { return settled(4, a) })
		report := EncodeReport(assign.Report{Instance: "newer", Capacity: 1})
		readable := append(slices.Clone(report), 9, 1, 'x') // with a field that this build does not know
		k.plainConsumer(cfg.Group, newer{report: readable}, cfg.Subtopologies[0].Topics...)
		eventually(t, "a member with a field more has its share", func() bool { return a.tasks() == 2 })
		report[1]++ // the next version
		k.plainConsumer(cfg.Group, newer{report: report}, cfg.Subtopologies[0].Topics...)
		eventually(t, "one of another version is in the group", func() bool { return len(k.members(cfg.Group)) == 3 })
		if a.tasks() != 2 {
			t.Errorf("%d tasks", a.tasks())
		}
	})
}

// A group whose partitions something else assigns, as brokers do under KIP-848, is left at once: what a member is given there would
// have nobody.
func TestPartitionsAssignedByOthers(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, false)
		topic := cfg.Subtopologies[0].Topics[0]
		k.plainConsumer(cfg.Group, impostor{kgo.RangeBalancer()}, topic)
		eventually(t, "the other one leads", func() bool { return k.assigned(cfg.Group, topic) == 4 })
		in := k.newInstance(cfg, "a")
		err := in.m.Run(t.Context())
		if !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), "group.protocol=classic") {
			t.Errorf("Run: %v", err)
		}
		eventually(t, "the other one has all partitions back", func() bool {
			return len(k.members(cfg.Group)) == 1 && k.assigned(cfg.Group, topic) == 4
		})
	})
}

// impostor assigns plain partitions under our protocol's name.
type impostor struct{ kgo.GroupBalancer }

func (impostor) ProtocolName() string { return ProtocolName }

// newer is a member of another build.
type newer struct {
	kgo.GroupBalancer
	report []byte
}

func (newer) ProtocolName() string { return ProtocolName }
func (newer) IsCooperative() bool  { return true }

func (n newer) JoinGroupMetadata(topics []string, _ map[string][]int32, _ int32) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData = topics, n.report
	return m.AppendTo(nil)
}

func (newer) ParseSyncAssignment([]byte) (map[string][]int32, error) { return nil, nil }
