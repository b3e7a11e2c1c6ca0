package harness

import (
	"context"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fakeApp is an application on a broker in this process, with a naive counter in place of streamworker.
func fakeApp(t *testing.T) *App {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return NewApp(t, &Kafka{Address: cluster.ListenAddrs()[0]}, "harness", 4)
}

// count is the naive counter.
func count(ctx context.Context, in, out *kgo.Client, topic string) {
	counts := map[string]uint64{}
	for ctx.Err() == nil {
		in.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			counts[string(r.Key)]++
			emit(out, topic, r.Key, counts[string(r.Key)])
		})
	}
}

func emit(out *kgo.Client, topic string, key []byte, count uint64) {
	out.Produce(context.Background(), &kgo.Record{Topic: topic, Key: key, Value: binary.BigEndian.AppendUint64(nil, count)}, nil)
}

func TestLoadAndWatchAgree(t *testing.T) {
	a := fakeApp(t)
	out := a.Kafka.Client(t)
	in := a.Kafka.Client(t, kgo.ConsumeTopics(a.Input()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); count(ctx, in, out, a.Output()) }()
	defer func() { cancel(); <-done }()

	load, watch := NewLoad(t, a, 500), NewWatch(t, a, 500)
	load.All()
	load.Start(5000, 1, 2)
	Until(t, time.Minute, "1000 records were sent", func() bool { return load.Sent() > 1500 })
	load.Stop()
	watch.AwaitExact(load, time.Minute)

	for key, sent := range load.counts {
		if p := watch.of[key]; sent > 1 && p != 1 && p != 2 {
			t.Fatalf("key %d of partition %d was sent, only 1 and 2 were asked for", key, p)
		}
	}
	if watch.Pauses()[1] == 0 || watch.Slowest()[1] == 0 {
		t.Errorf("partition 1: pauses %v, slowest %v", watch.Pauses(), watch.Slowest())
	}

	// What is wrong must be seen.
	emit(out, a.Output(), []byte(Key(7)), uint64(load.counts[7]))
	emit(out, a.Output(), []byte(Key(8)), uint64(load.counts[8]+3))
	Until(t, time.Minute, "the wrong records are seen", func() bool { return watch.Compare(load).Above > 0 })
	d := watch.Compare(load)
	if d.Repeated != 1 || d.Skipped != 1 || d.Above != 3 || d.Below != 0 || d.AbovePartitions[watch.of[8]] != 3 {
		t.Errorf("difference %+v", d)
	}
	load.counts[9] += 2
	if d := watch.Compare(load); d.Below != 2 {
		t.Errorf("two records never came: %+v", d)
	}
}

func TestTakeovers(t *testing.T) {
	log := `{"time":"2026-01-02T03:04:05.5Z","level":"INFO","msg":"handover","task":"0_3","role":"take","generation":7,"gap_ms":31.5,"slowest_ms":40}
{"time":"2026-01-02T03:04:05.2Z","level":"INFO","msg":"handover","task":"0_3","role":"release","generation":7,"took_ms":8}
{"time":"2026-01-02T03:04:04Z","level":"INFO","msg":"handover","task":"0_1","role":"take","generation":6,"gap_ms":20,"slowest_ms":25}
panic: no log line
`
	p := &Process{Name: "b"}
	for line := range strings.Lines(log) {
		if e, ok := parseEvent([]byte(line)); ok {
			p.log = append(p.log, e)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	want := []Takeover{{Instance: "b", Task: "0_3", Generation: 7, At: at, Gap: 31500 * time.Microsecond, Slowest: 40 * time.Millisecond}}
	if got := Takeovers(at.Add(-time.Second), p); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if all := Takeovers(time.Time{}, p); len(all) != 2 || all[0].Task != "0_1" {
		t.Errorf("in order of time: %+v", all)
	}
}

func TestSummarize(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(200-i)*time.Millisecond)
	}
	got := Summarize(d)
	want := Figures{N: 200, Median: 101 * time.Millisecond, P99: 199 * time.Millisecond, Max: 200 * time.Millisecond}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if none := Summarize(nil); none != (Figures{}) {
		t.Errorf("of nothing: %v", none)
	}
}

func TestBalanced(t *testing.T) {
	of := func(id, state string, active ...string) Instance {
		return Instance{ID: id, State: state, Active: active}
	}
	even := Status{Instances: []Instance{of("a", "running", "0_0", "0_1"), of("b", "running", "0_2")}}
	if !even.Balanced(3, "a", "b") {
		t.Error("two and one of three tasks is balanced")
	}
	for name, s := range map[string]Status{
		"a task is not run": {Instances: []Instance{of("a", "running", "0_0"), of("b", "running", "0_2")}},
		"b is draining":     {Instances: []Instance{of("a", "running", "0_0", "0_1"), of("b", "draining", "0_2")}},
		"uneven":            {Instances: []Instance{of("a", "running", "0_0", "0_1", "0_2"), of("b", "running")}},
		"one more instance": {Instances: append(slices.Clone(even.Instances), of("c", "running"))},
	} {
		if s.Balanced(3, "a", "b") {
			t.Errorf("balanced though %s", name)
		}
	}
}
