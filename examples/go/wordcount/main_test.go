package main

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/streams/streamstest"
)

func TestCounts(t *testing.T) {
	d := streamstest.Start(t, build)
	if err := streamstest.NewInput(d, "lines", streams.String, streams.String).Pipe("", "to be or not To be", 1); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"to": 2, "be": 2, "or": 1, "not": 1}
	if got := d.Table("counts"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// An instance of it runs on a broker, with the configuration beside it.
func TestOnBroker(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "lines", "counts"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg, err := config.Load("wordcount.yaml", nil, config.Overrides{Brokers: cluster.ListenAddrs(), StateDir: t.TempDir(), Program: streams.Build(build)})
	if err != nil {
		t.Fatal(err)
	}
	inst := instance.New(cfg, instance.Options{Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	go func() { ended <- inst.Run(context.Background()) }()

	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("counts"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte("to be or not to be")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for got["to"] < 2 || got["be"] < 2 || got["not"] < 1 {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			n, err := streams.Int.Decode(r.Value)
			if err != nil {
				t.Error(err)
			}
			got[string(r.Key)] = n
		})
		if ctx.Err() != nil {
			t.Fatalf("only %v after a minute", got)
		}
	}
	inst.Stop(config.Release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := kadm.NewClient(client).ListTopics(ctx, "word-count-counts-changelog"); err != nil {
		t.Errorf("the changelog: %v", err)
	}
}
