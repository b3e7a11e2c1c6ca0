package group

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is an instance alone in its group, with a coordinator behind a gate.
func (k *cluster) member() (in *instance, topic string, c *Coordinator, g *gate) {
	k.t.Helper()
	cfg := k.config(4, true)
	in = k.start(cfg, "a")
	eventually(k.t, "one member", func() bool { return settled(4, in) })
	g = &gate{}
	return in, cfg.Subtopologies[0].Topics[0], k.coordinator(cfg.Group, g.dialer()), g
}

func (in *instance) lease() (string, int32) {
	g := in.generations()
	return in.id(), g[len(g)-1]
}

func TestCommitAndFetch(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		in, topic, c, _ := k.member()
		second := k.topic(1)
		id, generation := in.lease()
		all := []TopicPartition{{topic, 0}, {topic, 1}, {topic, 3}, {second, 0}}
		fetched, err := c.Fetch(t.Context(), all)
		if err != nil || len(fetched) != 4 {
			t.Fatalf("fetched %v, %v", fetched, err)
		}
		for p, got := range fetched {
			if got != (Committed{Offset: -1}) {
				t.Errorf("%v before any commit: %+v", p, got)
			}
		}
		if err := c.Commit(t.Context(), id, generation, []OffsetCommit{
			{topic, 0, 10, "token"}, {topic, 3, 0, ""}, {second, 0, 1 << 40, strings.Repeat("m", 4000)},
		}); err != nil {
			t.Fatal(err)
		}
		fetched, err = c.Fetch(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range map[TopicPartition]Committed{
			{topic, 0}:  {Offset: 10, Metadata: "token"},
			{topic, 1}:  {Offset: -1},
			{topic, 3}:  {Offset: 0},
			{second, 0}: {Offset: 1 << 40, Metadata: strings.Repeat("m", 4000)},
		} {
			if fetched[p] != want {
				t.Errorf("%v: got %+v, want %+v", p, fetched[p], want)
			}
		}
		if err := c.Commit(t.Context(), id, generation, nil); err != nil {
			t.Errorf("a commit of nothing: %v", err)
		}
	})
}

// errorOf returns what a failed commit says of one partition.
func errorOf(t *testing.T, err error, p TopicPartition) error {
	t.Helper()
	var failed *CommitError
	if !errors.As(err, &failed) {
		t.Fatalf("no CommitError: %v", err)
	}
	return failed.Of(p)
}

func TestCommitRefused(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		in, topic, c, _ := k.member()
		id, generation := in.lease()
		offsets := []OffsetCommit{{topic, 0, 10, ""}, {topic, 1, 20, ""}}
		for _, c2 := range []struct {
			name       string
			id         string
			generation int32
			offsets    []OffsetCommit
			want       error
		}{
			{"another generation", id, generation - 1, offsets, kerr.IllegalGeneration},
			{"another member", "x-" + uuidA, generation, offsets, kerr.UnknownMemberID},
			{"no such topic", id, generation, []OffsetCommit{{"group-nothing", 0, 1, ""}}, kerr.UnknownTopicOrPartition},
		} {
			t.Run(c2.name, func(t *testing.T) {
				err := c.Commit(t.Context(), c2.id, c2.generation, c2.offsets)
				if !errors.Is(err, ErrRefused) || errors.Is(err, ErrUnanswered) || !errors.Is(err, c2.want) {
					t.Errorf("got %v", err)
				}
				for _, o := range c2.offsets {
					if of := errorOf(t, err, TopicPartition{o.Topic, o.Partition}); !errors.Is(of, c2.want) {
						t.Errorf("partition %d: %v", o.Partition, of)
					}
				}
			})
		}
		if k.fake == nil { // kfake has no limit
			t.Run("one partition of two", func(t *testing.T) {
				err := c.Commit(t.Context(), id, generation, []OffsetCommit{{topic, 0, 10, ""}, {topic, 1, 20, strings.Repeat("m", 5000)}})
				if !errors.Is(err, ErrRefused) || !errors.Is(err, kerr.OffsetMetadataTooLarge) {
					t.Fatalf("got %v", err)
				}
				if errorOf(t, err, TopicPartition{topic, 0}) != nil {
					t.Error("the good partition failed, too")
				}
			})
		}
		t.Run("between join and sync", func(t *testing.T) {
			// A stranger has joined and in took part, but the stranger leads and does not sync.
			cfg := in.cfg
			cfg.Group = k.name()
			client, leads := k.stranger(cfg, nil)
			k.sync(client, cfg, leads)
			c := k.coordinator(cfg.Group)
			if err := c.Commit(t.Context(), leads.MemberID, leads.Generation, offsets); err != nil {
				t.Fatal(err)
			}
			cfg.Coordinator = c
			k.start(cfg, "b")
			// While members join, commits under the old generation still count.
			eventually(t, "b waits", func() bool { return k.describe(cfg.Group).State == "PreparingRebalance" })
			if err := c.Commit(t.Context(), leads.MemberID, leads.Generation, offsets); err != nil {
				t.Errorf("in the join phase: %v", err)
			}
			leads = k.rejoin(client, cfg, leads)
			err := c.Commit(t.Context(), leads.MemberID, leads.Generation, offsets)
			if !errors.Is(err, ErrRefused) || !errors.Is(err, kerr.RebalanceInProgress) {
				t.Errorf("got %v", err)
			}
		})
	})
}

// A commit whose answer does not come may have been carried out. It is not sent again.
func TestCommitUnanswered(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		in, topic, c, g := k.member()
		id, generation := in.lease()
		if err := c.Commit(t.Context(), id, generation, []OffsetCommit{{topic, 0, 1, ""}}); err != nil {
			t.Fatal(err) // and the connection is open
		}
		var sent *kfake.FaultHandle
		if k.fake != nil {
			sent = k.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Observe: true, Count: -1})
			defer sent.Remove()
		}
		g.setBreaks(true)
		err := c.Commit(t.Context(), id, generation, []OffsetCommit{{topic, 0, 2, ""}})
		g.setBreaks(false)
		if !errors.Is(err, ErrUnanswered) || errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
		if sent != nil && sent.Hits() != 1 {
			t.Errorf("sent %d times", sent.Hits())
		}
		// It was carried out this time; and the next one finds the coordinator again.
		eventually(t, "the commit counts", func() bool {
			fetched, err := c.Fetch(t.Context(), []TopicPartition{{topic, 0}})
			return err == nil && fetched[TopicPartition{topic, 0}].Offset == 2
		})

		g.close()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { failed <- c.Commit(ctx, id, generation, []OffsetCommit{{topic, 0, 3, ""}}) }()
		cancel()
		g.open()
		if err := <-failed; err == nil || !errors.Is(err, ErrUnanswered) && !errors.Is(err, ErrRefused) {
			t.Errorf("a commit that was given up: %v", err)
		}
	})
}

func TestCommitNotSent(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCoordinator("g", kgo.SeedBrokers(fake.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Fetch(t.Context(), []TopicPartition{{"in", 0}}); err != nil {
		t.Fatal(err)
	}
	fake.Close()
	// The first one may find the connection that has just broken, the second has to dial.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last error
	eventually(t, "a refusal", func() bool {
		dial, stop := context.WithTimeout(ctx, patience/100)
		defer stop()
		last = c.Commit(dial, "m", 1, []OffsetCommit{{"in", 0, 1, ""}})
		return errors.Is(last, ErrRefused)
	})
	if errors.Is(last, ErrUnanswered) {
		t.Errorf("got %v", last)
	}
}

// A broker that answers "not coordinator" may have it in its log all the same; and the next request looks
// for the coordinator anew.
func TestCoordinatorMoves(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	c, err := NewCoordinator("g", kgo.SeedBrokers(fake.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	commit := func() error { return c.Commit(t.Context(), "", -1, []OffsetCommit{{"in", 0, 7, ""}}) }
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	finds := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Observe: true, Count: -1})
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.NotCoordinator})
	if err := commit(); !errors.Is(err, ErrUnanswered) || !errors.Is(err, kerr.NotCoordinator) {
		t.Errorf("got %v", err)
	}
	if err := commit(); err != nil {
		t.Error(err)
	}
	if finds.Hits() == 0 {
		t.Error("the coordinator was not looked for again")
	}
}

func TestVerdicts(t *testing.T) {
	for code, want := range map[*kerr.Error]error{
		kerr.RebalanceInProgress:       ErrRefused,
		kerr.IllegalGeneration:         ErrRefused,
		kerr.UnknownMemberID:           ErrRefused,
		kerr.FencedInstanceID:          ErrRefused,
		kerr.OffsetMetadataTooLarge:    ErrRefused,
		kerr.TopicAuthorizationFailed:  ErrRefused,
		kerr.CoordinatorLoadInProgress: ErrRefused,
		kerr.NotCoordinator:            ErrUnanswered,
		kerr.CoordinatorNotAvailable:   ErrUnanswered,
		kerr.RequestTimedOut:           ErrUnanswered,
		kerr.UnknownServerError:        ErrUnanswered,
	} {
		if err := verdict(code.Code); !errors.Is(err, want) || !errors.Is(err, code) {
			t.Errorf("%s: %v", code.Message, err)
		}
	}
	if err := verdict(0); err != nil {
		t.Error(err)
	}
}

// An offset in an open transaction is reported at once, for the caller to ask again.
func TestFetchUnstable(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		topic, group := k.topic(2), k.name()
		txn := k.name()
		producer, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...), kgo.TransactionalID(txn), kgo.DefaultProduceTopic(topic))
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := producer.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		producerID, epoch, err := producer.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add := kmsg.NewPtrAddOffsetsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = txn, producerID, epoch, group
		if resp, err := add.RequestWith(t.Context(), producer); err != nil || resp.ErrorCode != 0 {
			t.Fatalf("add offsets: %v, %v", resp, err)
		}
		c := k.coordinator(group)
		if err := c.Commit(t.Context(), "", -1, []OffsetCommit{{topic, 0, 7, ""}}); err != nil {
			t.Fatal(err)
		}
		ids, err := c.topicIDs(t.Context(), map[string]bool{topic: true})
		if err != nil {
			t.Fatal(err)
		}
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = add.TransactionalID, producerID, epoch, group
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = topic, ids[topic]
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Offset = 42
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(t.Context(), producer)
		if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("commit in the transaction: %+v, %v", resp, err)
		}

		at, other := TopicPartition{topic, 0}, TopicPartition{topic, 1}
		fetched, err := c.Fetch(t.Context(), []TopicPartition{at, other})
		if err != nil {
			t.Fatal(err)
		}
		// kfake takes all partitions of the group for unstable.
		if !errors.Is(fetched[at].Err, ErrUnstable) || fetched[other].Err != nil && k.fake == nil {
			t.Errorf("got %+v", fetched)
		}
		if err := producer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the offset is stable", func() bool {
			fetched, err := c.Fetch(t.Context(), []TopicPartition{at})
			return err == nil && fetched[at] == Committed{Offset: 42}
		})
	})
}
