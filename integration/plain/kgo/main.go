// A plain consumer of franz-go's kgo; see package plain.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var strategies = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	brokers, group, in, out, strategy := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	has := 0 // of the callbacks alone, which kgo calls one at a time
	changed := func(by int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, cl *kgo.Client, parts map[string][]int32) {
			has += by * len(parts[in])
			_, generation := cl.GroupMetadata()
			fmt.Println("assigned", has, generation)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumerGroup(group), kgo.Balancers(strategies[strategy]),
		kgo.ConsumeTopics(in), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.HeartbeatInterval(time.Second),
		kgo.OnPartitionsAssigned(changed(1)), kgo.OnPartitionsRevoked(changed(-1)), kgo.OnPartitionsLost(changed(-1)))
	if err != nil {
		fail(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		var copies []*kgo.Record
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { copies = append(copies, &kgo.Record{Topic: out, Key: r.Key, Value: r.Value}) })
		if len(copies) > 0 {
			if err := cl.ProduceSync(context.Background(), copies...).FirstErr(); err != nil {
				fail(err)
			}
			if err := cl.CommitUncommittedOffsets(context.Background()); err != nil {
				fail(err)
			}
		}
		cl.AllowRebalance()
	}
	cl.CloseAllowingRebalance()
}
