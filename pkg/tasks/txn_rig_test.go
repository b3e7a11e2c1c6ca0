package tasks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// txnRig is a rig under exactly once whose offsets are those of a group on the rig's Kafka: what is added to a
// transaction counts when Kafka has committed that, and is unstable until then.
type txnRig struct {
	*rig
	offsets *txnOffsets
}

// byHand makes the test commit: the interval does not end.
func byHand(c *Config) { c.CommitInterval = 24 * time.Hour }

// silentStreams write nothing.
const silentStreams = `
- name: s
  from: {topic: in}
  steps:
    - filter: 'false'
    - to: {topic: out}
`

func newTxnRig(t *testing.T, streams string, partitions int32, change ...func(*Config)) *txnRig {
	t.Helper()
	r := &txnRig{rig: newRig(t, streams, partitions, change...)}
	r.offsets = &txnOffsets{cl: r.newClient()}
	r.cfg.Offsets, r.cfg.Transactions = r.offsets, r.offsets
	r.cfg.NewProducer = func() (*kgo.Client, error) {
		return kgo.NewClient(kgo.SeedBrokers(r.cluster.ListenAddrs()...), kgo.RecordPartitioner(Partitioner()), kgo.ProducerLinger(0),
			kgo.MetadataMinAge(10*time.Millisecond), kgo.Dialer(r.wire.dial), kgo.TransactionalID("app-me"))
	}
	r.m = NewManager(r.cfg)
	return r
}

func (r *txnRig) start() *txnRig {
	r.rig.start()
	return r
}

// commit begins the end of the transaction.
func (r *txnRig) commit() { r.inside(r.m.commit) }

func (r *txnRig) awaitPhaseOfTransaction(want txnPhase) {
	r.t.Helper()
	r.await(fmt.Sprintf("the transaction is in phase %d", want), func() (ok bool) {
		r.inside(func() { ok = r.m.txn.phase == want })
		return ok
	})
}

// awaitOffset waits until the committed offset of "in" is the given one.
func (r *txnRig) awaitOffset(partition int32, offset int64) {
	r.t.Helper()
	r.await(fmt.Sprintf("offset %d of partition %d is committed", offset, partition), func() bool {
		return r.committedOffset(partition).Offset == offset
	})
}

func (r *txnRig) committedOffset(partition int32) Offset {
	tp := TopicPartition{"in", partition}
	got, err := r.offsets.Fetch(context.Background(), []TopicPartition{tp})
	if err != nil {
		r.t.Fatal(err)
	}
	return got[tp]
}

// awaitWritten waits until a partition's log reaches an offset, committed or not.
func (r *txnRig) awaitWritten(topic string, partition int32, end int64) {
	r.t.Helper()
	r.await(fmt.Sprintf("%s partition %d is written up to %d", topic, partition, end), func() bool {
		ends, err := r.adm.ListEndOffsets(context.Background(), topic)
		if err != nil {
			return false
		}
		o, ok := ends.Lookup(topic, partition)
		return ok && o.Offset >= end
	})
}

// outputs reads all committed records of "out", in order by key.
func (r *txnRig) outputs() map[string][]int64 {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ends, err := r.adm.ListCommittedOffsets(ctx, "out")
	if err != nil {
		r.t.Fatal(err)
	}
	starts, err := r.adm.ListStartOffsets(ctx, "out")
	if err != nil {
		r.t.Fatal(err)
	}
	left, offsets := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		s, _ := starts.Lookup("out", o.Partition)
		offsets[o.Partition] = kgo.NewOffset().AtStart()
		if o.Offset > s.Offset {
			left[o.Partition] = o.Offset
		}
	})
	cl := r.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"out": offsets}), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	defer cl.Close()
	out := map[string][]int64{}
	for len(left) > 0 {
		cl.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
			if !rec.Attrs.IsControl() {
				out[string(rec.Key)] = append(out[string(rec.Key)], int64(binary.BigEndian.Uint64(rec.Value)))
			}
			if rec.Offset+1 >= left[rec.Partition] {
				delete(left, rec.Partition)
			}
		})
		if ctx.Err() != nil {
			r.t.Fatal("the output does not come to its end")
		}
	}
	return out
}

// awaitExactlyOnce waits until everything sent is counted, and checks that each count was written once.
func (r *txnRig) awaitExactlyOnce() {
	r.t.Helper()
	var out map[string][]int64
	r.await("everything sent is counted", func() bool {
		out = r.outputs()
		for k, n := range r.sent {
			if v := out[k]; len(v) == 0 || v[len(v)-1] < n {
				return false
			}
		}
		return true
	})
	for k, n := range r.sent {
		want := make([]int64, n)
		for i := range want {
			want[i] = int64(i + 1)
		}
		if !slices.Equal(out[k], want) {
			r.t.Errorf("counts of %s: %v, want 1 to %d, each once", k, out[k], n)
		}
	}
}

// txnOffsets are the committed offsets of group "app". The test says which leases are good.
type txnOffsets struct {
	cl *kgo.Client

	mu      sync.Mutex
	ids     map[string][16]byte
	refuse  func(handover.Lease) bool // nil: none
	before  func(c commitCall)        // before a request is sent; it may block
	spoiled int32                     // a partition that is refused for itself; 0: none
}

func (o *txnOffsets) hooks() (refuse func(handover.Lease) bool, before func(commitCall)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refuse, o.before
}

// split takes the spoiled partition out.
func (o *txnOffsets) split(offsets []Offset) ([]Offset, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, off := range offsets {
		if o.spoiled != 0 && off.Partition == o.spoiled {
			return slices.Delete(slices.Clone(offsets), i, i+1), &RefusedError{Partitions: map[TopicPartition]error{off.TopicPartition: errRefusedByTest}}
		}
	}
	return offsets, nil
}

func (o *txnOffsets) set(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *txnOffsets) id(ctx context.Context, topic string) ([16]byte, error) {
	o.mu.Lock()
	id, ok := o.ids[topic]
	o.mu.Unlock()
	if ok {
		return id, nil
	}
	got, err := kadm.NewClient(o.cl).ListTopics(ctx, topic)
	if err != nil {
		return id, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[string][16]byte{}
	}
	o.ids[topic] = got[topic].ID
	return got[topic].ID, nil
}

var errRefusedByTest = errors.New("refused by the test")

func (o *txnOffsets) Commit(ctx context.Context, lease handover.Lease, offsets []Offset) (handover.Outcome, error) {
	c := commitCall{lease, offsets}
	refuse, before := o.hooks()
	if before != nil {
		before(c)
	}
	if refuse != nil && refuse(lease) {
		return handover.Declined, errRefusedByTest
	}
	offsets, part := o.split(offsets)
	if part != nil && len(offsets) == 0 {
		return handover.Declined, part
	}
	commit := kadm.Offsets{}
	for _, off := range offsets {
		commit.Add(kadm.Offset{Topic: off.Topic, Partition: off.Partition, At: off.Offset, Metadata: off.Metadata})
	}
	got, err := kadm.NewClient(o.cl).CommitOffsets(ctx, "app", commit)
	if err == nil {
		err = got.Error()
	}
	if err != nil {
		return handover.Unknown, err
	}
	return handover.Acknowledged, part
}

// write commits as another member would.
func (o *txnOffsets) write(t *testing.T, topic string, partition int32, offset int64, metadata string) {
	t.Helper()
	commit := kadm.Offsets{}
	commit.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, Metadata: metadata})
	if err := kadm.NewClient(o.cl).CommitAllOffsets(context.Background(), "app", commit); err != nil {
		t.Fatal(err)
	}
}

func (o *txnOffsets) CommitOffsets(ctx context.Context, p *kgo.Client, lease handover.Lease, offsets []Offset) (handover.Outcome, error) {
	c := commitCall{lease, offsets}
	refuse, before := o.hooks()
	if before != nil {
		before(c)
	}
	if refuse != nil && refuse(lease) {
		return handover.Declined, errRefusedByTest
	}
	offsets, part := o.split(offsets)
	if part != nil && len(offsets) == 0 {
		return handover.Declined, part
	}
	id, epoch, err := p.ProducerID(ctx)
	if err != nil {
		return handover.Unknown, err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = "app-me", id, epoch, "app", -1
	for _, off := range offsets {
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = off.Partition, off.Offset, &off.Metadata
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.Partitions = off.Topic, append(t.Partitions, p)
		if t.TopicID, err = o.id(ctx, off.Topic); err != nil {
			return handover.Unknown, err
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, o.cl)
	if err != nil {
		return handover.Unknown, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return handover.Unknown, err
			}
		}
	}
	return handover.Acknowledged, part
}

func (o *txnOffsets) Fence(context.Context) error { return nil }

func (o *txnOffsets) Fetch(ctx context.Context, parts []TopicPartition) (map[TopicPartition]Offset, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = "app"
	names := map[[16]byte]string{}
	for _, tp := range parts {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		id, err := o.id(ctx, tp.Topic)
		if err != nil {
			return nil, err
		}
		names[id] = tp.Topic
		t.Topic, t.TopicID, t.Partitions = tp.Topic, id, []int32{tp.Partition}
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, o.cl)
	if err != nil {
		return nil, err
	}
	out := map[TopicPartition]Offset{}
	for _, tp := range parts {
		out[tp] = Offset{TopicPartition: tp, Offset: -1}
	}
	for _, g := range resp.Groups {
		switch err := kerr.ErrorForCode(g.ErrorCode); {
		case errors.Is(err, kerr.GroupIDNotFound):
			return out, nil
		case errors.Is(err, kerr.UnstableOffsetCommit):
			return nil, nil
		case err != nil:
			return nil, err
		}
		for _, t := range g.Topics {
			name := t.Topic
			if name == "" {
				name = names[t.TopicID]
			}
			for _, p := range t.Partitions {
				tp := TopicPartition{name, p.Partition}
				if p.ErrorCode != 0 {
					delete(out, tp)
					continue
				}
				off := Offset{TopicPartition: tp, Offset: p.Offset}
				if p.Metadata != nil {
					off.Metadata = *p.Metadata
				}
				out[tp] = off
			}
		}
	}
	return out, nil
}

// token is the release in a partition's committed offset; nil: none.
func (r *txnRig) token(partition int32) *handover.Token {
	m, _ := handover.ParseMetadata(r.committedOffset(partition).Metadata)
	return m.Token
}
