package instance

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
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

// inGroup makes an instance a member of the application's group, as Kafka sees it.
func (b *bench) inGroup(instance string) {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ClientID(b.app+"-"+instance), kgo.ConsumerGroup(b.app),
		kgo.ConsumeTopics(b.app+"-in"), kgo.SessionTimeout(time.Minute))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	adm := kadm.NewClient(b.client)
	b.await(instance+" is in the group", func() bool {
		got, err := adm.DescribeGroups(context.Background(), b.app)
		for _, m := range got[b.app].Members {
			if err == nil && m.ClientID == b.app+"-"+instance {
				return true
			}
		}
		return false
	})
}

// fencing is what the instance "me" fences others by.
func (b *bench) fencing() *fencing {
	return &fencing{
		app: b.app, own: "me", group: b.app, adm: kadm.NewClient(b.client), log: slog.New(slog.DiscardHandler),
		writes:  map[string]bool{b.app + "-out": true, b.app + "-c-changelog": true},
		expired: func(time.Time) bool { return false },
		client: func(opts ...kgo.Opt) (*kgo.Client, error) {
			return kgo.NewClient(append(opts, kgo.SeedBrokers(b.brokers...))...)
		},
	}
}

func (b *bench) fence(f *fencing) {
	b.t.Helper()
	if err := f.run(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// What is fenced is an instance of this application that is not in the group, whatever it wrote to, and nobody else.
func TestFenceKeepsToItsOwn(t *testing.T) {
	b := newBench(t, config.ExactlyOnce, 1)
	if _, err := kadm.NewClient(b.client).CreateTopics(context.Background(), 1, 1, nil, b.app+"-c-changelog", b.app+"-2-c-changelog"); err != nil {
		t.Fatal(err)
	}
	writers := map[string]*kgo.Client{
		"dead":           b.writer(transactionalID(b.app, "dead"), b.app+"-c-changelog"),
		"dead by output": b.writer(transactionalID(b.app, "dead-2"), b.app+"-out"),
		"alive":          b.writer(transactionalID(b.app, "alive"), b.app+"-out"),
		"itself":         b.writer(transactionalID(b.app, "me"), b.app+"-out"),
		"foreign":        b.writer("foreign-"+b.app, b.app+"-out"),
		// Its transactional id could be that of an instance "2-x" here; what it writes to tells.
		"of another application": b.writer(transactionalID(b.app+"-2", "x"), b.app+"-2-c-changelog"),
	}
	f := b.fencing()
	b.inGroup("alive")
	b.fence(f) // it is not in the group itself, so it fences nobody
	if err := writers["dead"].EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatalf("fenced without a view of the group: %v", err)
	}
	writers["dead"] = b.writer(transactionalID(b.app, "dead"), b.app+"-c-changelog")
	b.inGroup("me")
	b.fence(f)
	for name, cl := range writers {
		err := cl.EndTransaction(context.Background(), kgo.TryCommit)
		if dead := name == "dead" || name == "dead by output"; dead && err == nil {
			t.Errorf("%s: not fenced", name)
		} else if !dead && err != nil {
			t.Errorf("%s: fenced for nothing: %v", name, err)
		}
	}
	b.fence(f) // nothing is left to do
}

// A process that was paused for longer than its session fences nobody: the writer may be back, and at work.
func TestNobodyIsFencedUnderAnExpiredLease(t *testing.T) {
	b := newBench(t, config.ExactlyOnce, 1)
	writer := b.writer(transactionalID(b.app, "dead"), b.app+"-out")
	b.inGroup("me")
	f := b.fencing()
	f.expired = func(time.Time) bool { return true }
	if err := f.run(context.Background()); !errors.Is(err, errExpired) {
		t.Errorf("fence: %v", err)
	}
	if err := writer.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatalf("fenced by a process without a lease: %v", err)
	}
}
