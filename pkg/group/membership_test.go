package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// config is that of a group in which nobody expires by itself within a test.
func (k *cluster) config(partitions int32, stateful bool) Config {
	k.t.Helper()
	topic := k.topic(partitions)
	return Config{
		Group:            k.name(),
		Session:          4 * time.Minute, // longer than patience
		Heartbeat:        100 * time.Millisecond,
		RebalanceTimeout: 4 * time.Minute,
		Subtopologies:    []Subtopology{{ID: 0, Topics: []string{topic}, Partitions: partitions, Stateful: stateful}},
		Policy:           assign.Policy{BalancingFactor: 2},
	}
}

func TestGroupOfThree(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(9, false)
		a := k.start(cfg, "a")
		eventually(t, "the first member has all tasks", func() bool { return settled(9, a) })
		b, c := k.start(cfg, "b"), k.start(cfg, "c")
		eventually(t, "three members share the tasks", func() bool {
			return settled(9, a, b, c) && a.tasks() == 3 && b.tasks() == 3 && c.tasks() == 3
		})

		// Kafka's own tools describe the group.
		group := k.describe(cfg.Group)
		if group.State != "Stable" || group.ProtocolType != "consumer" || group.Protocol != ProtocolName || len(group.Members) != 3 {
			t.Errorf("the group is described as %+v", group)
		}
		var partitions []int32
		for _, m := range group.Members {
			as, ok := m.Assigned.AsConsumer()
			if !ok {
				t.Fatalf("the assignment of %s is no consumer's", m.MemberID)
			}
			for _, topic := range as.Topics {
				partitions = append(partitions, topic.Partitions...)
			}
			if js, ok := m.Join.AsConsumer(); !ok || !slices.Equal(js.Topics, cfg.Subtopologies[0].Topics) {
				t.Errorf("the subscription of %s is %+v", m.MemberID, js)
			}
		}
		if slices.Sort(partitions); !slices.Equal(partitions, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("the partitions are described as %v", partitions)
		}

		// The first one leaves: it was the leader.
		if err := a.m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "two members share the tasks", func() bool { return settled(9, b, c) })
		if ids := k.members(cfg.Group); slices.Contains(ids, a.id()) {
			t.Errorf("%s has left and is still in %v", a.id(), ids)
		}
		if len(a.losses())+len(b.losses())+len(c.losses()) > 0 {
			t.Error("a membership was lost")
		}
	})
}

// Each forced round has a report made after the call, and leads to a plan, whatever is under way.
func TestForceRoundIsNeverLost(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(3, true)
		all := []*instance{k.start(cfg, "a"), k.start(cfg, "b"), k.start(cfg, "c")}
		// From the first moment: also before and during the first join.
		var wg sync.WaitGroup
		for i, in := range all {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			wg.Go(func() {
				for n := range 30 {
					in.change(func(*assign.Report) {}) // not even a change: the same report must do
					if n%3 == 0 {
						want := n + 1
						eventually(t, fmt.Sprintf("round %d of %s", want, in.cfg.ClientID), func() bool { return in.seen() >= want })
					}
					time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		for _, in := range all {
			eventually(t, "the last change of "+in.cfg.ClientID+" is in a plan", func() bool { return in.seen() == 30 })
			if len(in.losses()) > 0 {
				t.Errorf("%s lost its membership: %v", in.cfg.ClientID, in.losses())
			}
		}
		eventually(t, "the group rests", func() bool { return settled(3, all...) })
		rounds := all[0].generations()
		t.Logf("90 forced rounds, %d took place", rounds[len(rounds)-1]-rounds[0]+1)
	})
}

// What is handed over as a lease is the round's.
func TestPlanHasTheRoundsGeneration(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a, b := k.start(cfg, "a"), k.start(cfg, "b")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		for _, in := range []*instance{a, b, a, b} {
			in.change(func(*assign.Report) {})
		}
		eventually(t, "the group rests", func() bool { return settled(4, a, b) && a.seen() == 2 && b.seen() == 2 })
		for _, in := range []*instance{a, b} {
			g := in.generations()
			if !slices.IsSorted(g) || len(slices.Compact(slices.Clone(g))) != len(g) {
				t.Errorf("the generations are %v", g)
			}
			// The coordinator takes it for the current one.
			commit := []OffsetCommit{{Topic: cfg.Subtopologies[0].Topics[0], Offset: 5}}
			if err := in.cfg.Coordinator.Commit(t.Context(), in.id(), g[len(g)-1], commit); err != nil {
				t.Error(err)
			}
			if err := in.cfg.Coordinator.Commit(t.Context(), in.id(), g[len(g)-1]-1, commit); !errors.Is(err, ErrRefused) {
				t.Errorf("a commit under the generation before: %v", err)
			}
		}
	})
}

// on_terminate: keep. The member stays in the group, whatever state it stops in.
func TestStopDoesNotLeave(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a := k.start(cfg, "a")
		eventually(t, "one member", func() bool { return settled(4, a) })
		a.halt()
		if ids := k.members(cfg.Group); !slices.Equal(ids, []string{a.id()}) {
			t.Fatalf("the group has %v, want %s", ids, a.id())
		}
		// b's join waits for a, which does not rejoin; b stops while it waits.
		b := k.start(cfg, "b")
		eventually(t, "b waits", func() bool { return len(k.members(cfg.Group)) == 2 })
		b.halt()
		if ids := k.members(cfg.Group); len(ids) != 2 {
			t.Errorf("the group has %v", ids)
		}
		for _, in := range []*instance{a, b} {
			if err := in.m.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		}
		eventually(t, "nobody is left", func() bool { return len(k.members(cfg.Group)) == 0 })
	})
}

// A restart removes its former self once its own join waits, so that the round neither waits for the
// session of the former to end nor completes without the new one. Sessions last longer than the test.
func TestRestartRemovesFormerMember(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		b := k.start(cfg, "b")
		cfg.FormerMemberFile = filepath.Join(t.TempDir(), "member")
		a := k.start(cfg, "a")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		a.halt()
		before := b.generations()

		var once sync.Once
		waiting := make(chan struct{})
		cfg.JoinWaiting = func() { once.Do(func() { close(waiting) }) }
		started := time.Now()
		again := k.start(cfg, "a")
		<-waiting
		b.m.Rejoin() // what a hello on the control topic does
		eventually(t, "the restarted one has a plan", func() bool { return len(again.generations()) > 0 })
		t.Logf("plan %v after the restart", time.Since(started).Round(time.Millisecond))
		eventually(t, "two members again", func() bool { return settled(4, again, b) })
		b.m.Rejoin() // a hello that comes late starts no round, though b leads
		time.Sleep(5 * cfg.Heartbeat)
		if ids := k.members(cfg.Group); len(ids) != 2 || slices.Contains(ids, a.id()) {
			t.Errorf("the group has %v, with the former %s", ids, a.id())
		}
		if g := b.generations(); len(g) != len(before)+1 {
			t.Errorf("the restart took %d rounds, want one", len(g)-len(before))
		}
	})
}

func TestExpelledMemberJoinsAnew(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a, b := k.start(cfg, "a"), k.start(cfg, "b")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		former := a.id()
		if err := k.coordinator(cfg.Group).Leave(t.Context(), "test", former); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a is back under another id", func() bool { return a.id() != former && settled(4, a, b) })
		if lost := a.losses(); len(lost) != 1 || !errors.Is(lost[0], ErrExpelled) {
			t.Errorf("a was told %v", lost)
		}
		if len(b.losses()) > 0 {
			t.Errorf("b was told %v", b.losses())
		}
	})
}

// kgo does not say when a join is answered with UNKNOWN_MEMBER_ID, it joins anew.
func TestExpelledWhileJoinWaits(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		if k.fake != nil {
			t.Skip("kfake does not answer the waiting join of a member that is removed")
		}
		cfg := k.config(4, true)
		a, b := k.start(cfg, "a"), k.start(cfg, "b")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		former := a.id()
		b.halt() // and does not rejoin: a's join will wait for it
		a.m.ForceRound()
		eventually(t, "a's join waits", func() bool { return k.describe(cfg.Group).State == "PreparingRebalance" })
		if err := k.coordinator(cfg.Group).Leave(t.Context(), "test", former, b.id()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a is back under another id", func() bool { return a.id() != former && settled(4, a) })
		if lost := a.losses(); len(lost) != 1 || !errors.Is(lost[0], ErrExpelled) {
			t.Errorf("a was told %v", lost)
		}
	})
}

// Without answers the lease ends when the session does, by our own clock.
func TestSilentCoordinatorEndsTheLease(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		cfg.Session, cfg.Heartbeat = 6*time.Second, 200*time.Millisecond
		g := &gate{}
		cfg.Options = []kgo.Opt{kgo.SeedBrokers(k.brokers...), g.dialer()}
		cfg.Coordinator = k.coordinator(cfg.Group, g.dialer())
		a := k.start(cfg, "a")
		eventually(t, "one member", func() bool { return settled(4, a) })
		before := a.generations()
		g.close()
		eventually(t, "the lease is lost", func() bool { return len(a.losses()) > 0 })
		g.open()
		eventually(t, "a new lease", func() bool { return len(a.generations()) > len(before) && settled(4, a) })
		if lost := a.losses(); !errors.Is(lost[0], ErrSessionOver) && !errors.Is(lost[0], ErrExpelled) {
			t.Errorf("a was told %v", lost)
		}
	})
}

// A lease that was lost by our own clock alone, the group having kept the member, is followed by one of
// another generation: commits that nobody answered under the old one must not count under the new one.
func TestFalseAlarmTakesANewGeneration(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a, b := k.start(cfg, "a"), k.start(cfg, "b")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		for _, in := range []*instance{a, b} { // the leader and the other
			id, before := in.id(), in.generations()
			in.m.expire(time.Now().Add(time.Hour))
			eventually(t, "a new lease", func() bool { return len(in.generations()) > len(before) && settled(4, a, b) })
			if g := in.generations(); in.id() != id || g[len(before)] <= before[len(before)-1] {
				t.Errorf("member %s with generations %v is now %s with %v", id, before, in.id(), g)
			}
			if lost := in.losses(); len(lost) != 1 || !errors.Is(lost[0], ErrSessionOver) {
				t.Errorf("was told %v", lost)
			}
		}
	})
}

// The round that a join was waiting for when the lease was lost counts what the lost lease had. Its plan is
// not handed over; that of the round after it is.
func TestLostWhileJoinWaits(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a, b := k.start(cfg, "a"), k.start(cfg, "b")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		b.halt()
		before := a.generations()
		a.m.ForceRound()
		eventually(t, "a's join waits", func() bool { return k.describe(cfg.Group).State == "PreparingRebalance" })
		a.m.expire(time.Now().Add(time.Hour))
		if err := b.m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a has a new lease", func() bool { return settled(4, a) && len(a.generations()) > len(before) })
		if got, want := a.generations()[len(before)], before[len(before)-1]+2; got != want {
			t.Errorf("the first plan is that of generation %d, want %d", got, want)
		}
		if lost := a.losses(); len(lost) != 1 {
			t.Errorf("a was told %v", lost)
		}
	})
}

// A join may wait for longer than a session: the member is alive all the while.
func TestLongJoinPhaseKeepsTheLease(t *testing.T) {
	if testing.Short() {
		t.Skip("takes longer than a session")
	}
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		b := k.start(cfg, "b") // with a session that outlasts the test
		short := cfg
		short.Session = 6 * time.Second
		a := k.start(short, "a")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		b.halt()
		a.m.ForceRound()
		eventually(t, "a's join waits", func() bool { return k.describe(cfg.Group).State == "PreparingRebalance" })
		rounds := len(a.generations())
		time.Sleep(short.Session * 3 / 2)
		if lost := a.losses(); len(lost) > 0 {
			t.Fatalf("a was told %v while its join waited", lost)
		}
		if len(a.generations()) != rounds {
			t.Fatal("the join did not wait")
		}
		if err := b.m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the round ends", func() bool { return len(a.generations()) == rounds+1 && settled(4, a) })
		if lost := a.losses(); len(lost) > 0 {
			t.Errorf("a was told %v", lost)
		}
	})
}

// stranger joins as a member that speaks the protocol's envelope but not its user data.
func (k *cluster) stranger(cfg Config, userData []byte) (*kgo.Client, *kmsg.JoinGroupResponse) {
	k.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(client.Close)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType = cfg.Group, protocolType
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 240_000, 240_000
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData = cfg.Subtopologies[0].Topics, userData
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = ProtocolName, m.AppendTo(nil)
	join.Protocols = append(join.Protocols, p)
	var resp *kmsg.JoinGroupResponse
	for range 2 { // the first answer only gives the member id
		if resp, err = join.RequestWith(k.t.Context(), client); err != nil {
			k.t.Fatal(err)
		}
		join.MemberID = resp.MemberID
	}
	if resp.ErrorCode != 0 {
		k.t.Fatalf("the stranger is refused with code %d", resp.ErrorCode)
	}
	return client, resp
}

func (k *cluster) sync(client *kgo.Client, cfg Config, as *kmsg.JoinGroupResponse, plan ...kmsg.SyncGroupRequestGroupAssignment) []byte {
	k.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation, req.GroupAssignment = cfg.Group, as.MemberID, as.Generation, plan
	req.ProtocolType, req.Protocol = kmsg.StringPtr(protocolType), kmsg.StringPtr(ProtocolName)
	resp, err := req.RequestWith(k.t.Context(), client)
	if err != nil || resp.ErrorCode != 0 {
		k.t.Fatalf("sync: code %v, %v", resp, err)
	}
	return resp.MemberAssignment
}

func TestUnreadableMemberGetsNothing(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a := k.start(cfg, "a")
		eventually(t, "one member", func() bool { return settled(4, a) })
		client, joined := k.stranger(cfg, []byte("sticky"))
		plan, err := decodeAssignment(k.sync(client, cfg, joined))
		if err != nil || len(plan.Own)+len(plan.Learn)+len(plan.Take) > 0 {
			t.Errorf("the stranger is told %+v, %v", plan, err)
		}
		if !settled(4, a) || len(a.losses()) > 0 {
			t.Errorf("a has %d tasks, and lost %v", a.tasks(), a.losses())
		}
	})
}

// A plan that cannot be read ends the lease: others may have been given the tasks.
func TestUnreadablePlanEndsTheLease(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		client, leads := k.stranger(cfg, nil) // the first one leads
		k.sync(client, cfg, leads)
		a := k.start(cfg, "a")
		leads = k.rejoin(client, cfg, leads)
		var plan []kmsg.SyncGroupRequestGroupAssignment
		for _, m := range leads.Members {
			p := kmsg.NewSyncGroupRequestGroupAssignment()
			p.MemberID = m.MemberID
			p.MemberAssignment = encodeAssignment(cfg.Subtopologies, assign.MemberPlan{Own: []assign.TaskID{task(0, 2)}}, true)
			plan = append(plan, p)
		}
		k.sync(client, cfg, leads, plan...)
		eventually(t, "a has a lease", func() bool { return a.tasks() == 1 })

		a.m.ForceRound()
		leads = k.rejoin(client, cfg, leads)
		k.sync(client, cfg, leads) // no assignment for a
		eventually(t, "a has lost it", func() bool { return len(a.losses()) > 0 })
		leads = k.rejoin(client, cfg, leads) // as a now reports no tasks
		k.sync(client, cfg, leads)
		time.Sleep(time.Second) // a tries again meanwhile
		if state := k.describe(cfg.Group).State; state != "Stable" {
			t.Errorf("the group is %s: a member that cannot read its plan must not force rounds", state)
		}
		if err := k.coordinator(cfg.Group).Leave(t.Context(), "test", leads.MemberID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a leads", func() bool { return settled(4, a) })
		if lost := a.losses(); len(lost) != 1 || !errors.Is(lost[0], ErrUnreadablePlan) {
			t.Errorf("a was told %v", lost)
		}
	})
}

func (k *cluster) rejoin(client *kgo.Client, cfg Config, before *kmsg.JoinGroupResponse) *kmsg.JoinGroupResponse {
	k.t.Helper()
	eventually(k.t, "a new member waits", func() bool { return k.describe(cfg.Group).State == "PreparingRebalance" })
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType, req.MemberID = cfg.Group, protocolType, before.MemberID
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 240_000, 240_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = ProtocolName
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = cfg.Subtopologies[0].Topics
	p.Metadata = m.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	resp, err := req.RequestWith(k.t.Context(), client)
	if err != nil || resp.ErrorCode != 0 {
		k.t.Fatalf("rejoin: code %v, %v", resp, err)
	}
	return resp
}

// What cannot get better by itself ends Run, with the remedy.
func TestNotAdmitted(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		t.Run("plain consumers in the group", func(t *testing.T) {
			cfg := k.config(2, false)
			plain, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...), kgo.ConsumerGroup(cfg.Group),
				kgo.ConsumeTopics(cfg.Subtopologies[0].Topics...))
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			eventually(t, "the consumer is in", func() bool { return k.describe(cfg.Group).State == "Stable" })
			wantNotAdmitted(t, k.newInstance(cfg, "a"))
		})
		t.Run("a session that the broker does not allow", func(t *testing.T) {
			cfg := k.config(2, false)
			cfg.Session = 10 * time.Hour
			wantNotAdmitted(t, k.newInstance(cfg, "a"))
		})
	})
}

func wantNotAdmitted(t *testing.T, in *instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := in.m.Run(ctx)
	if !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("Run returned %v", err)
	}
	t.Log(err)
}
