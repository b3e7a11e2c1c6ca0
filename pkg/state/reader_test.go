package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

const patience = time.Minute

// kafka is a cluster and a topic for one test.
type kafka struct {
	*testing.T
	ctx     context.Context
	brokers []string
	fake    *kfake.Cluster // nil: a real one
	cl      *kgo.Client
	adm     *kadm.Client
	topic   string
}

// onKafka runs a test on kfake and, if STREAMWORKER_TEST_BROKERS names one, on a real Kafka.
func onKafka(t *testing.T, test func(k *kafka)) {
	t.Run("kfake", func(t *testing.T) {
		fake, err := kfake.NewCluster(kfake.NumBrokers(2))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		runOn(t, fake.ListenAddrs(), fake, test)
	})
	t.Run("real", func(t *testing.T) {
		brokers := os.Getenv("STREAMWORKER_TEST_BROKERS")
		if brokers == "" {
			t.Skip("STREAMWORKER_TEST_BROKERS is not set")
		}
		runOn(t, strings.Split(brokers, ","), nil, test)
	})
}

func runOn(t *testing.T, brokers []string, fake *kfake.Cluster, test func(k *kafka)) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	k := &kafka{T: t, ctx: ctx, brokers: brokers, fake: fake, topic: fmt.Sprintf("state-test-%x", rand.Uint64())}
	k.cl = k.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	k.adm = kadm.NewClient(k.cl)
	test(k)
}

func (k *kafka) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(k.brokers...))...)
	k.check(err)
	k.Cleanup(cl.Close)
	return cl
}

func (k *kafka) check(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *kafka) create(partitions int32, configs map[string]*string) {
	k.Helper()
	_, err := k.adm.CreateTopic(k.ctx, partitions, 1, configs, k.topic)
	k.check(err)
	k.Cleanup(func() { _, _ = k.adm.DeleteTopics(context.Background(), k.topic) })
}

func (k *kafka) produce(cl *kgo.Client, partition int32, keys ...string) {
	k.Helper()
	for _, key := range keys {
		r := &kgo.Record{Topic: k.topic, Partition: partition, Key: []byte(key), Value: []byte("value of " + key)}
		k.check(cl.ProduceSync(k.ctx, r).FirstErr())
	}
}

func (k *kafka) truncate(before int64) {
	k.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(k.topic, 0, before, -1)
	_, err := k.adm.DeleteRecords(k.ctx, offsets)
	k.check(err)
}

// reader runs a Reader until the test ends.
func (k *kafka) reader(cfg ReaderConfig) *Reader {
	r := k.idleReader(cfg)
	k.run(r)
	return r
}

func (k *kafka) idleReader(cfg ReaderConfig) *Reader {
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	return NewReader(k.client(), cfg)
}

func (k *kafka) run(r *Reader) {
	ctx, cancel := context.WithCancel(k.ctx)
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	k.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			k.Error(err)
		}
	})
}

// heard collects what is delivered for one partition.
type heard struct {
	mu      sync.Mutex
	batches []Batch
	wake    chan struct{}
	hold    bool // leave Done to the test
}

func newHeard() *heard { return &heard{wake: make(chan struct{}, 1)} }

func (h *heard) deliver(b Batch) {
	h.mu.Lock()
	h.batches = append(h.batches, b)
	h.mu.Unlock()
	if !h.hold {
		b.Done()
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *heard) all() []Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.batches)
}

// until waits until the batches so far satisfy f.
func (h *heard) until(k *kafka, what string, f func([]Batch) bool) []Batch {
	k.Helper()
	timeout := time.After(patience)
	for {
		if all := h.all(); f(all) {
			return all
		}
		select {
		case <-h.wake:
		case <-timeout:
			k.Fatalf("waited in vain for %s; heard %+v", what, h.all())
		}
	}
}

func at(next int64) func([]Batch) bool {
	return func(b []Batch) bool { return len(b) > 0 && b[len(b)-1].Next >= next }
}

func keys(batches []Batch) string {
	var all []string
	for _, b := range batches {
		for _, r := range b.Records {
			all = append(all, string(r.Key))
		}
	}
	return strings.Join(all, " ")
}

func failedWith(err error) func([]Batch) bool {
	return func(b []Batch) bool { return len(b) > 0 && errors.Is(b[len(b)-1].Err, err) }
}

func wantKeys(k *kafka, batches []Batch, want string) {
	k.Helper()
	if got := keys(batches); got != want {
		k.Errorf("read %q, want %q", got, want)
	}
}

func TestReaderTails(t *testing.T) {
	onKafka(t, func(k *kafka) {
		k.create(3, nil)
		k.produce(k.cl, 0, "a", "b", "c")
		r := k.reader(ReaderConfig{})
		zero, two, empty := newHeard(), newHeard(), newHeard()
		r.Add(k.topic, 0, 0, zero.deliver)
		r.Add(k.topic, 1, 0, empty.deliver)
		r.Add(k.topic, 2, 0, two.deliver)
		zero.until(k, "the end", at(3))
		empty.until(k, "the end of an empty partition", at(0))

		k.produce(k.cl, 0, "d")
		k.produce(k.cl, 2, "x")
		wantKeys(k, zero.until(k, "an append", at(4)), "a b c d")
		wantKeys(k, two.until(k, "another partition", at(1)), "x")
		if last := zero.all()[len(zero.all())-1]; last.HighWatermark != 4 || last.LogStart != 0 {
			k.Errorf("end %d, start %d, want 4 and 0", last.HighWatermark, last.LogStart)
		}

		r.Remove(k.topic, 0)
		n := len(zero.all())
		k.produce(k.cl, 0, "e")
		k.produce(k.cl, 2, "y")
		two.until(k, "the other partition", at(2))
		if len(zero.all()) != n {
			k.Error("a batch was delivered after Remove")
		}
		again := newHeard()
		r.Add(k.topic, 0, 3, again.deliver)
		wantKeys(k, again.until(k, "the rest", at(5)), "d e")
	})
}

// TestReaderWaitsForDone: a partition is not read on before its batch is done; others are.
func TestReaderWaitsForDone(t *testing.T) {
	onKafka(t, func(k *kafka) {
		k.create(2, nil)
		r := k.reader(ReaderConfig{})
		held, other := newHeard(), newHeard()
		held.hold = true
		r.Add(k.topic, 0, 0, held.deliver)
		r.Add(k.topic, 1, 0, other.deliver)
		held.until(k, "the first batch", at(0))
		k.produce(k.cl, 0, "a", "b")
		k.produce(k.cl, 1, "x")
		other.until(k, "the other partition", at(1))
		if n := len(held.all()); n != 1 {
			k.Fatalf("%d batches before Done, want 1", n)
		}
		held.all()[0].Done()
		for held.until(k, "the next", func(b []Batch) bool { return len(b) > 1 }); keys(held.all()) != "a b"; {
			all := held.all()
			all[len(all)-1].Done()
			held.until(k, "more", func(b []Batch) bool { return len(b) > len(all) })
		}
	})
}

func TestReaderTruncated(t *testing.T) {
	onKafka(t, func(k *kafka) {
		k.create(1, nil)
		k.produce(k.cl, 0, "a", "b", "c", "d", "e")
		k.truncate(3)
		r := k.reader(ReaderConfig{})

		start := newHeard()
		r.Add(k.topic, 0, 0, start.deliver)
		wantKeys(k, start.until(k, "the end from the start", at(5)), "d e")

		for _, from := range []int64{2, 7} {
			h := newHeard()
			r.Add(k.topic, 0, from, h.deliver)
			b := h.until(k, "an error", failedWith(ErrOutOfRange))
			if b[0].LogStart != 3 || b[0].HighWatermark != 5 {
				k.Errorf("from %d: the log is said to hold %d to %d, want 3 to 5", from, b[0].LogStart, b[0].HighWatermark)
			}
		}

		k.truncate(5) // nothing is left
		none := newHeard()
		r.Add(k.topic, 0, 0, none.deliver)
		none.until(k, "the end of an emptied log", at(5))
	})
}

// TestReaderTransactions: aborted and open transactions give no records, and their end is reached.
func TestReaderTransactions(t *testing.T) {
	onKafka(t, func(k *kafka) {
		k.create(1, nil)
		txn := k.client(kgo.TransactionalID(k.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		end := func(commit kgo.TransactionEndTry) { k.check(txn.EndTransaction(k.ctx, commit)) }
		k.check(txn.BeginTransaction())
		k.produce(txn, 0, "a")
		end(kgo.TryCommit) // marker at 1
		k.check(txn.BeginTransaction())
		k.produce(txn, 0, "b", "c")
		end(kgo.TryAbort) // marker at 4

		r := k.reader(ReaderConfig{})
		h := newHeard()
		r.Add(k.topic, 0, 0, h.deliver)
		b := h.until(k, "the end beyond an aborted tail", at(5))
		wantKeys(k, b, "a")
		if last := b[len(b)-1]; last.HighWatermark != 5 {
			k.Errorf("high watermark %d, want 5", last.HighWatermark)
		}

		k.check(txn.BeginTransaction())
		k.produce(txn, 0, "d")
		k.produce(k.cl, 0, "e") // after the open transaction
		h.until(k, "news of a longer log", func(b []Batch) bool { return b[len(b)-1].HighWatermark == 7 })
		wantKeys(k, h.all(), "a")
		end(kgo.TryCommit)
		wantKeys(k, h.until(k, "the end", at(8)), "a d e")
	})
}

// TestReaderRecreatedTopic: a topic that is not there yet is waited for; one made anew is an error.
func TestReaderRecreatedTopic(t *testing.T) {
	onKafka(t, func(k *kafka) {
		r := k.reader(ReaderConfig{})
		h := newHeard()
		r.Add(k.topic, 0, 0, h.deliver)
		k.create(1, nil)
		k.produce(k.cl, 0, "a")
		h.until(k, "a topic made later", at(1))
		_, err := k.adm.DeleteTopic(k.ctx, k.topic)
		k.check(err)
		for { // deletion takes effect a little later
			if _, err := k.adm.CreateTopic(k.ctx, 1, 1, nil, k.topic); err == nil {
				break
			} else if !errors.Is(err, kerr.TopicAlreadyExists) {
				k.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		h.until(k, "an error", failedWith(ErrTopicChanged))
	})
}

// TestReaderCompacted reads a log whose end compaction has emptied, as far as it does that.
func TestReaderCompacted(t *testing.T) {
	onKafka(t, func(k *kafka) {
		if k.fake != nil {
			k.Skip("kfake does not compact like Kafka")
		}
		k.create(1, map[string]*string{
			"cleanup.policy": kadm.StringPtr("compact"), "segment.ms": kadm.StringPtr("100"), "delete.retention.ms": kadm.StringPtr("0"),
			"min.cleanable.dirty.ratio": kadm.StringPtr("0.01"),
		})
		for range 5 {
			k.produce(k.cl, 0, "a", "b", "c")
			time.Sleep(150 * time.Millisecond) // so that the next record rolls the segment
		}
		for _, key := range []string{"a", "b", "c"} {
			k.check(k.cl.ProduceSync(k.ctx, &kgo.Record{Topic: k.topic, Key: []byte(key)}).FirstErr())
		}
		time.Sleep(150 * time.Millisecond)
		k.produce(k.cl, 0, "d")
		for deadline := time.Now().Add(2 * patience); ; time.Sleep(time.Second) {
			r := k.reader(ReaderConfig{})
			h := newHeard()
			r.Add(k.topic, 0, 0, h.deliver)
			b := h.until(k, "the end", at(19))
			r.Remove(k.topic, 0)
			if n := len(strings.Fields(keys(b))); n < 10 || time.Now().After(deadline) {
				k.Logf("%d records were left of 19", n)
				return
			}
		}
	})
}

// control answers Fetch requests of a kfake cluster by f, nil: as usual.
func (k *kafka) control(f func(*kmsg.FetchRequest) *kmsg.FetchResponse) {
	k.fake.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.fake.KeepControl()
		resp := f(req.(*kmsg.FetchRequest))
		if resp == nil {
			return nil, nil, false
		}
		resp.Version = req.GetVersion()
		return resp, nil, true
	})
}

// answer returns a response with the same answer for each partition asked for.
func answer(req *kmsg.FetchRequest, f func(part int32, p *kmsg.FetchResponseTopicPartition)) *kmsg.FetchResponse {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			part := kmsg.NewFetchResponseTopicPartition()
			part.Partition = p.Partition
			f(p.Partition, &part)
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// onFake is for what only a cluster that is told to can do.
func onFake(t *testing.T, test func(k *kafka)) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	runOn(t, fake.ListenAddrs(), fake, test)
}

// TestReaderHole: compaction may leave nothing between a position and the end. An empty answer alone
// does not say so, as there may have been no room for the partition; an empty answer for it alone does.
func TestReaderHole(t *testing.T) {
	onFake(t, func(k *kafka) {
		k.create(2, nil)
		var mu sync.Mutex
		together, alone := 0, 0
		k.control(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
			mu.Lock()
			defer mu.Unlock()
			if len(req.Topics[0].Partitions) == 2 {
				together++
			} else if together > 0 {
				alone++
			}
			return answer(req, func(_ int32, p *kmsg.FetchResponseTopicPartition) {
				p.HighWatermark, p.LastStableOffset = 10, 8
			})
		})
		k.check(k.fake.MoveTopicPartition(k.topic, 0, 0))
		k.check(k.fake.MoveTopicPartition(k.topic, 1, 0))
		r := k.idleReader(ReaderConfig{MaxWait: 10 * time.Millisecond})
		a, b := newHeard(), newHeard()
		r.Add(k.topic, 0, 5, a.deliver)
		r.Add(k.topic, 1, 8, b.deliver)
		k.run(r)
		got := a.until(k, "the end of the hole", at(8))
		if got[0].Next != 8 || got[0].HighWatermark != 10 {
			k.Errorf("moved on to %d of %d, want the last stable offset 8 of 10", got[0].Next, got[0].HighWatermark)
		}
		b.until(k, "the other one", at(8))
		mu.Lock()
		defer mu.Unlock()
		if together == 0 || alone == 0 {
			k.Errorf("asked %d times together, then %d times alone: want both", together, alone)
		}
	})
}

// TestReaderErrors goes through answers that pass and one that does not.
func TestReaderErrors(t *testing.T) {
	onFake(t, func(k *kafka) {
		k.create(1, nil)
		k.produce(k.cl, 0, "a", "b")
		passing := []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition, kerr.KafkaStorageError, kerr.OffsetNotAvailable, kerr.OffsetOutOfRange}
		var mu sync.Mutex
		k.control(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
			mu.Lock()
			defer mu.Unlock()
			if len(passing) == 0 {
				return nil
			}
			code := passing[0].Code
			passing = passing[1:]
			return answer(req, func(_ int32, p *kmsg.FetchResponseTopicPartition) {
				p.ErrorCode, p.HighWatermark, p.LogStartOffset = code, -1, -1
			})
		})
		r := k.reader(ReaderConfig{})
		h := newHeard()
		r.Add(k.topic, 0, 1, h.deliver)
		wantKeys(k, h.until(k, "the record after all errors", at(2)), "b")

		k.control(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
			return answer(req, func(_ int32, p *kmsg.FetchResponseTopicPartition) { p.ErrorCode = kerr.TopicAuthorizationFailed.Code })
		})
		refused := newHeard()
		r.Add(k.topic, 0, 0, refused.deliver)
		refused.until(k, "the refusal", failedWith(kerr.TopicAuthorizationFailed))
	})
}

// TestReaderFollowsTheLeader moves a partition to and fro while it is written.
func TestReaderFollowsTheLeader(t *testing.T) {
	onFake(t, func(k *kafka) {
		k.create(1, nil)
		r := k.reader(ReaderConfig{})
		h := newHeard()
		r.Add(k.topic, 0, 0, h.deliver)
		var want []string
		for i := range 10 {
			k.check(k.fake.MoveTopicPartition(k.topic, 0, int32(i%2)))
			want = append(want, fmt.Sprint("k", i))
			k.produce(k.cl, 0, want[i])
			h.until(k, "the record", at(int64(i+1)))
		}
		wantKeys(k, h.all(), strings.Join(want, " "))
	})
}

// TestReaderSharesBandwidth: a partition that is behind is held to the rate; one at its end is not.
func TestReaderSharesBandwidth(t *testing.T) {
	onFake(t, func(k *kafka) {
		k.create(2, nil)
		big := make([]byte, 200<<10)
		for i := range big {
			big[i] = byte(rand.Uint32()) // it must not compress
		}
		for range 3 {
			k.check(k.cl.ProduceSync(k.ctx, &kgo.Record{Topic: k.topic, Key: []byte("big"), Value: big}).FirstErr())
		}
		r := k.reader(ReaderConfig{BytesPerSecond: 1}) // the first record costs days
		bulk, tip := newHeard(), newHeard()
		r.Add(k.topic, 1, 0, tip.deliver)
		tip.until(k, "the end", at(0))
		r.Add(k.topic, 0, 0, bulk.deliver)
		bulk.until(k, "the first part", at(1))
		k.produce(k.cl, 1, "x", "y")
		tip.until(k, "records at the end in spite of the debt", at(2))
		if b := bulk.all(); b[len(b)-1].Next == 3 {
			k.Error("the partition that is behind was read to the end")
		}
		r.Urgent(k.topic, 0, true)
		bulk.until(k, "the end, now that the stream waits for it", at(3))
	})
}

func TestThrottle(t *testing.T) {
	now := time.Unix(1000, 0)
	th := throttle{rate: 1000}
	if th.wait(now) != 0 {
		t.Error("a fresh bucket makes wait")
	}
	th.spend(1250, now) // the burst is 250
	if got := th.wait(now); got != time.Second {
		t.Errorf("wait %v, want 1s", got)
	}
	now = now.Add(time.Second)
	if got := th.wait(now); got != 0 {
		t.Errorf("wait %v after the debt is paid", got)
	}
	now = now.Add(time.Hour)
	th.spend(251, now)
	if got := th.wait(now); got != time.Millisecond {
		t.Errorf("wait %v, want 1ms: what is not used does not add up beyond the burst", got)
	}
	free := throttle{}
	free.spend(1<<40, now)
	if free.wait(now) != 0 {
		t.Error("no rate must not bound anything")
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
