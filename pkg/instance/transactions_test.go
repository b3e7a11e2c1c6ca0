package instance

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

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
	x := &transactions{id: transactionalID(b.app, "me"), app: b.app, adm: kadm.NewClient(b.client),
		client: func(opts ...kgo.Opt) (*kgo.Client, error) {
			return kgo.NewClient(append(opts, kgo.SeedBrokers(b.brokers...))...)
		}}
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
