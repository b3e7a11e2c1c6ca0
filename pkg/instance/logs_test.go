package instance

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/tasks"
)

func TestBoundsOfLogsAskTheLeadersConcernedOnly(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for p := range int32(2) {
		if err := c.MoveTopicPartition("in", p, p); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for range 5 {
		if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: "in", Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	quit := make(chan struct{})
	defer close(quit)
	c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		if c.CurrentNode() == 1 { // this broker does not answer
			c.KeepControl()
			c.SleepControl(func() { <-quit })
		}
		return nil, nil, false
	})
	first := tasks.TopicPartition{Topic: "in"}
	if err := (logs{cl}).Purge(context.Background(), map[tasks.TopicPartition]int64{first: 2}); err != nil {
		t.Fatal(err)
	}
	starts, err := logs{cl}.Starts(context.Background(), []tasks.TopicPartition{first})
	if err != nil || starts[first] != 2 {
		t.Errorf("starts %v, %v", starts, err)
	}
	ends, err := logs{cl}.Ends(context.Background(), []tasks.TopicPartition{first})
	if err != nil || ends[first] != 5 || len(ends) != 1 {
		t.Errorf("ends %v, %v", ends, err)
	}
	if got, err := (logs{cl}).Ends(context.Background(), []tasks.TopicPartition{first, {Topic: "in", Partition: 7}}); err == nil {
		t.Errorf("a partition that does not exist has the end %v", got)
	}
}
