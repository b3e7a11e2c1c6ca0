package tasks

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// countStreams counts the keys of topic "in" into topic "out".
const countStreams = `
- name: s
  from: {topic: in}
  steps:
    - count: {store: counts}
    - to: {topic: out, value: int}
`

// rig is one Manager on a Kafka in this process. The group is played by the test: it sends the plans, and
// answers commits and fetches of offsets from a ledger.
type rig struct {
	t       *testing.T
	cluster *kfake.Cluster
	client  *kgo.Client
	adm     *kadm.Client
	cfg     Config
	m       *Manager
	ledger  *ledger
	group   *scriptedGroup
	logs    *countedLogs
	wire    *gate // between the producers and Kafka

	events struct {
		sync.Mutex
		failed    []FailureInfo
		takeovers []TakeoverInfo
		restored  []RestoreInfo
		released  []ReleaseInfo
	}

	stop    context.CancelFunc // ends the manager
	stopped chan struct{}
	sent    map[string]int64
	keys    map[int32][]string // of "in": of each record, by partition
}

// newRig makes a rig whose topics have the given number of partitions. change may edit the configuration.
func newRig(t *testing.T, streams string, partitions int32, change ...func(*Config)) *rig {
	t.Helper()
	f := yamlnode.Parse("t.yaml", []byte(streams), nil)
	def := topology.Definition{App: "app", Streams: f.Root(), Tables: yamlnode.Absent(f.Root())}
	if m := f.Root(); m.IsMap() {
		def.Streams, def.Tables = m.Map().Get("streams"), m.Map().Get("tables")
	}
	top := def.Parse()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := &rig{t: t, cluster: c, wire: newGate(), group: &scriptedGroup{}, sent: map[string]int64{}, keys: map[int32][]string{}, stopped: make(chan struct{})}
	r.client = r.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	r.adm = kadm.NewClient(r.client)
	r.ledger = &ledger{table: map[TopicPartition]Offset{}}
	r.logs = &countedLogs{adm: r.adm}

	created := map[string]bool{}
	create := func(topic string) {
		if created[topic] {
			return
		}
		created[topic] = true
		if err := c.CreateTopic(topic, partitions, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.cfg = Config{
		Offsets: r.ledger, Group: r.group, Logs: r.logs, Threads: 2, CommitInterval: 20 * time.Millisecond,
		NewProducer: func() (*kgo.Client, error) {
			opts := []kgo.Opt{
				kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(Partitioner()), kgo.ProducerLinger(0),
				kgo.MetadataMinAge(10 * time.Millisecond), kgo.Dialer(r.wire.dial),
			}
			if r.cfg.Transactions != nil {
				opts = append(opts, kgo.TransactionalID("app-me"))
			}
			return kgo.NewClient(opts...)
		},
		Events: Events{
			TaskFailed: func(f FailureInfo) { r.note(func() { r.events.failed = append(r.events.failed, f) }) },
			TakenOver:  func(k TakeoverInfo) { r.note(func() { r.events.takeovers = append(r.events.takeovers, k) }) },
			Restored:   func(k RestoreInfo) { r.note(func() { r.events.restored = append(r.events.restored, k) }) },
			Released:   func(k ReleaseInfo) { r.note(func() { r.events.released = append(r.events.released, k) }) },
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	if testing.Verbose() {
		r.cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, s := range top.Subtopologies {
		sub := Subtopology{Subtopology: s, Partitions: partitions}
		for _, src := range s.Sources {
			create(src.Topic)
		}
		for _, sink := range s.Sinks {
			create(sink.Topic)
		}
		for _, st := range s.Stores {
			create(st.Changelog)
			sub.Stores = append(sub.Stores, state.StoreSpec{Name: st.Name, Changelog: st.Changelog, TopicID: c.TopicInfo(st.Changelog).TopicID})
		}
		r.cfg.Subtopologies = append(r.cfg.Subtopologies, sub)
	}
	for _, g := range top.Globals {
		create(g.Topic)
		r.cfg.Globals = append(r.cfg.Globals, Global{Global: g, Partitions: partitions})
	}
	for _, f := range change {
		f(&r.cfg)
	}
	if r.cfg.Engine == nil {
		if r.cfg.Engine, err = state.NewEngine(state.Config{Dir: t.TempDir(), BallastBytes: -1, Logger: r.cfg.Logger}); err != nil {
			t.Fatal(err)
		}
	}
	r.cfg.Reader = state.NewReader(r.newClient(), state.ReaderConfig{MaxWait: 50 * time.Millisecond, Logger: r.cfg.Logger})
	r.cfg.Input = r.newClient(kgo.FetchMaxWait(20*time.Millisecond), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	r.m = NewManager(r.cfg)
	return r
}

func (r *rig) newClient(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.cluster.ListenAddrs()...), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(cl.Close)
	return cl
}

func (r *rig) note(f func()) {
	r.events.Lock()
	defer r.events.Unlock()
	f()
}

// start runs the manager until the test ends, or end is called.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	reading, stopReading := context.WithCancel(context.Background())
	r.stop = cancel
	var reader sync.WaitGroup
	reader.Go(func() { _ = r.cfg.Reader.Run(reading) })
	go func() {
		defer close(r.stopped)
		if err := r.m.Run(ctx); err != nil {
			r.t.Errorf("manager: %v", err)
		}
	}()
	r.t.Cleanup(func() {
		r.wire.open()
		r.end()
		stopReading()
		reader.Wait()
		if err := r.cfg.Engine.Close(); err != nil {
			r.t.Errorf("closing the state: %v", err)
		}
	})
	return r
}

// end stops the manager and waits for it.
func (r *rig) end() {
	r.t.Helper()
	r.stop()
	select {
	case <-r.stopped:
	case <-time.After(time.Minute):
		r.t.Fatal("the manager does not end")
	}
	r.await("its goroutines have ended", func() bool { return !strings.Contains(otherStacks(), "pkg/tasks.(*") })
}

// otherStacks are the stacks of all goroutines but those of tests.
func otherStacks() string {
	buf := make([]byte, 1<<20)
	var out strings.Builder
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if !strings.Contains(stack, "pkg/tasks.Test") && !strings.Contains(stack, "pkg/tasks.(*rig)") {
			out.WriteString(stack + "\n\n")
		}
	}
	return out.String()
}

func (r *rig) await(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("timed out waiting until %s; %+v", what, r.m.Status())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// inside runs f on the manager's loop.
func (r *rig) inside(f func()) {
	r.t.Helper()
	if !r.m.call(f) {
		r.t.Fatal("the manager has ended")
	}
}

// mode is what the manager has made of a task, with the machine's phase.
func (r *rig) look(t assign.TaskID) (md mode, p handover.Phase) {
	r.t.Helper()
	r.inside(func() {
		if s := r.m.slots[t]; s != nil {
			md = s.mode
			if s.closing {
				md = absent
			}
		}
		p = r.m.machine.Task(t).Phase
	})
	return md, p
}

func (r *rig) awaitPhase(t assign.TaskID, want handover.Phase) {
	r.t.Helper()
	r.await(fmt.Sprintf("task %s is %s", t, want), func() bool { _, p := r.look(t); return p == want })
}

func (r *rig) awaitMode(t assign.TaskID, want mode) {
	r.t.Helper()
	r.await(fmt.Sprintf("task %s is in mode %d", t, want), func() bool { md, _ := r.look(t); return md == want })
}

// plan sends this member, "me", a plan.
func (r *rig) plan(generation int32, p assign.MemberPlan) { r.m.Plan("me", generation, p) }

func id(partition int32) assign.TaskID { return assign.TaskID{Partition: partition} }

func own(ids ...assign.TaskID) assign.MemberPlan { return assign.MemberPlan{Own: ids} }

func releaseOf(t assign.TaskID, generation int32) assign.MemberPlan {
	return assign.MemberPlan{Release: []assign.Handover{{Task: t, Release: assign.ReleaseID{Generation: generation, Owner: "me"}}}}
}

func takeOf(t assign.TaskID, generation int32, owner string) assign.MemberPlan {
	return assign.MemberPlan{Take: []assign.Handover{{Task: t, Release: assign.ReleaseID{Generation: generation, Owner: owner}}}}
}

// send writes n records over the keys to a partition of "in" and remembers the counts to expect.
func (r *rig) send(partition int32, n, keys int) {
	r.t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		key := fmt.Sprintf("%d/%d", partition, i%keys)
		r.sent[key]++
		r.keys[partition] = append(r.keys[partition], key)
		recs[i] = &kgo.Record{Topic: "in", Partition: partition, Key: []byte(key), Value: []byte("x")}
	}
	if err := r.client.ProduceSync(context.Background(), recs...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// counts reads what is committed of a topic of counts: the last value of each key, and the number of records.
func (r *rig) counts(topic string) (last map[string]int64, records int) {
	r.t.Helper()
	ends, err := r.adm.ListCommittedOffsets(context.Background(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	left := map[int32]int64{}
	offsets := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		offsets[o.Partition] = kgo.NewOffset().AtStart()
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	cl := r.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	defer cl.Close()
	last = map[string]int64{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for len(left) > 0 {
		cl.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
			if v := rec.Value; !rec.Attrs.IsControl() {
				if strings.HasSuffix(topic, "-changelog") {
					v = v[8:] // behind the timestamp
				}
				last[string(rec.Key)] = int64(binary.BigEndian.Uint64(v))
				records++
			}
			if rec.Offset+1 >= left[rec.Partition] {
				delete(left, rec.Partition)
			}
		})
		if ctx.Err() != nil {
			r.t.Fatalf("reading %s: %d partitions do not come to their end", topic, len(left))
		}
	}
	return last, records
}

// awaitCounts waits until the output's last counts are those of what was sent, and then makes sure that no
// record was counted twice.
func (r *rig) awaitCounts() {
	r.t.Helper()
	var total int64
	for _, n := range r.sent {
		total += n
	}
	var last map[string]int64
	r.await("everything sent is counted", func() bool {
		last, _ = r.counts("out")
		for k, n := range r.sent {
			if last[k] < n {
				return false
			}
		}
		return true
	})
	if !maps.Equal(last, r.sent) {
		r.t.Fatalf("counts %v, sent %v", last, r.sent)
	}
}

// awaitCommitted waits until the committed offset of "in" is the given one.
func (r *rig) awaitCommitted(partition int32, offset int64) {
	r.t.Helper()
	r.await(fmt.Sprintf("offset %d of partition %d is committed", offset, partition), func() bool {
		return r.ledger.offset("in", partition) == offset
	})
}
