package instance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// writer is a transactional producer with a transaction open on a topic.
func (b *bench) writer(id, topic string) *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		b.t.Fatal(err)
	}
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
	return cl
}

// fencer is what an instance fences others by.
func (b *bench) fencer(instance string) *transactions {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	return &transactions{
		id: transactionalID(b.app, instance), app: b.app, expired: func(time.Time) bool { return false }, adm: kadm.NewClient(cl),
		client: func(opts ...kgo.Opt) (*kgo.Client, error) {
			return kgo.NewClient(append(opts, kgo.SeedBrokers(b.brokers...))...)
		},
	}
}

// What is fenced is what writes to the partitions asked for under this application's ids, and nobody else: not
// when there are no partitions, as a stateless task has no changelogs, nor when somebody else writes there.
func TestFenceKeepsToItsOwn(t *testing.T) {
	b := newBench(t, config.ExactlyOnce, 1)
	if _, err := kadm.NewClient(b.client).CreateTopics(context.Background(), 1, 1, nil, b.app+"-c-changelog"); err != nil {
		t.Fatal(err)
	}
	dead := b.writer(transactionalID(b.app, "dead"), b.app+"-c-changelog")
	elsewhere := b.writer(transactionalID(b.app, "elsewhere"), b.app+"-out")
	foreign := b.writer("foreign-"+b.app, b.app+"-c-changelog")
	x := b.fencer("me")
	if err := x.Fence(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for _, cl := range []*kgo.Client{elsewhere, foreign} {
		if err := cl.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
			t.Fatalf("fenced for nothing: %v", err)
		}
	}
	foreign = b.writer("foreign-"+b.app, b.app+"-c-changelog")
	if err := x.Fence(context.Background(), []tasks.TopicPartition{{Topic: b.app + "-c-changelog"}}); err != nil {
		t.Fatal(err)
	}
	if err := dead.EndTransaction(context.Background(), kgo.TryCommit); err == nil {
		t.Error("the dead writer is not fenced")
	}
	if err := foreign.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Errorf("somebody else is fenced: %v", err)
	}
}

// The log of a partition shows a transaction as open until its marker is written, which may take a while. Its
// writer is in the next one by then, and must not be fenced: it lives.
func TestFenceSparesAWriterThatHasGoneOn(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "a-c-changelog", "a-out"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	b := &bench{t: t, app: "a", brokers: cluster.ListenAddrs()}
	ctx := context.Background()
	living := b.writer(transactionalID("a", "living"), "a-c-changelog")
	if err := living.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if err := living.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := living.ProduceSync(ctx, &kgo.Record{Topic: "a-out", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	producer, _, err := living.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cluster.ControlKey(int16(kmsg.DescribeProducers), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
		st, sp, sa := kmsg.NewDescribeProducersResponseTopic(), kmsg.NewDescribeProducersResponseTopicPartition(),
			kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		sa.ProducerID, sa.CurrentTxnStartOffset = producer, 0
		sp.ActiveProducers = append(sp.ActiveProducers, sa)
		st.Topic, st.Partitions = "a-c-changelog", append(st.Partitions, sp)
		resp.Topics = append(resp.Topics, st)
		return resp, nil, true
	})
	if err := b.fencer("me").Fence(ctx, []tasks.TopicPartition{{Topic: "a-c-changelog"}}); err != nil {
		t.Fatal(err)
	}
	if err := living.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatalf("a living writer is fenced: %v", err)
	}
}

// A process that was paused for longer than its session fences nobody: the writer may be its successor.
func TestNobodyIsFencedUnderAnExpiredLease(t *testing.T) {
	b := newBench(t, config.ExactlyOnce, 1)
	if _, err := kadm.NewClient(b.client).CreateTopics(context.Background(), 1, 1, nil, b.app+"-c-changelog"); err != nil {
		t.Fatal(err)
	}
	successor := b.writer(transactionalID(b.app, "successor"), b.app+"-c-changelog")
	x := b.fencer("me")
	x.expired = func(time.Time) bool { return true }
	if err := x.Fence(context.Background(), []tasks.TopicPartition{{Topic: b.app + "-c-changelog"}}); !errors.Is(err, errExpired) {
		t.Errorf("fence: %v", err)
	}
	if err := successor.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatalf("fenced by a process without a lease: %v", err)
	}
}
