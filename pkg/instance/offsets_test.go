package instance

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func TestCommitTellsPartitionsApart(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	coord, err := group.NewCoordinator("g", kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer coord.Close()
	var list []tasks.Offset
	for p := range int32(3) {
		list = append(list, tasks.Offset{TopicPartition: tasks.TopicPartition{Topic: "in", Partition: p}, Offset: 5, Metadata: "m"})
	}
	fail := func(err *kerr.Error, partitions ...int32) kfake.Fault {
		return kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "in", Partitions: partitions, Err: err}
	}
	for _, tc := range []struct {
		name    string
		faults  []kfake.Fault
		want    handover.Outcome
		refused int
		fails   bool
	}{
		{name: "all are taken", want: handover.Acknowledged},
		{name: "one is refused", faults: []kfake.Fault{fail(kerr.TopicAuthorizationFailed, 1)}, want: handover.Acknowledged, refused: 1, fails: true},
		{name: "each is refused for itself", faults: []kfake.Fault{fail(kerr.OffsetMetadataTooLarge, 0, 1, 2)}, want: handover.Declined, refused: 3, fails: true},
		{name: "the lease is refused", faults: []kfake.Fault{fail(kerr.RebalanceInProgress, 0, 1, 2)}, want: handover.Declined, fails: true},
		{name: "one has no answer", faults: []kfake.Fault{fail(kerr.RequestTimedOut, 2), fail(kerr.TopicAuthorizationFailed, 1)}, want: handover.Unknown, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := c.Fault(tc.faults...)
			defer h.Remove()
			o, err := offsets{coord}.Commit(context.Background(), handover.Lease{Generation: -1}, list)
			if o != tc.want || (err != nil) != tc.fails {
				t.Fatalf("outcome %d, %v; want %d", o, err, tc.want)
			}
			var refused *tasks.RefusedError
			if n := 0; errors.As(err, &refused) {
				if n = len(refused.Partitions); n != tc.refused {
					t.Errorf("%d partitions are refused for themselves: %v", n, err)
				}
			} else if tc.refused > 0 {
				t.Errorf("no partition is refused for itself: %v", err)
			}
		})
	}
}
