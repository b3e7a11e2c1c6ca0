package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
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

	"github.com/streamworker/streamworker/pkg/group/assign"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brokersEnv names a real Kafka; the same tests run against kfake without it.
const brokersEnv = "STREAMWORKER_TEST_BROKERS"

// onEachKafka runs a test on kfake and, where there is one, on a real Kafka.
func onEachKafka(t *testing.T, test func(t *testing.T, brokers []string)) {
	t.Run("kfake", func(t *testing.T) { test(t, fake(t).ListenAddrs()) })
	t.Run("kafka", func(t *testing.T) {
		addr := os.Getenv(brokersEnv)
		if addr == "" {
			t.Skip("set " + brokersEnv + " to test on a real Kafka")
		}
		test(t, strings.Split(addr, ","))
	})
}

func fake(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func client(t *testing.T, brokers []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(append(Opts(), kgo.SeedBrokers(brokers...)), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// bus returns a bus on a fresh application's topic, which is deleted in the end, and what it logs.
func bus(t *testing.T, brokers []string) (*Bus, *logBuffer) {
	t.Helper()
	cl := client(t, brokers)
	logs := new(logBuffer)
	b := NewBus(cl, "control-test-"+strings.ToLower(rand.Text()[:10]), slog.New(slog.NewTextHandler(logs, nil)))
	if err := b.EnsureTopic(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := kadm.NewClient(cl).DeleteTopics(context.Background(), b.topic); err != nil {
			t.Error(err)
		}
	})
	return b, logs
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestMarksAndStatuses(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		b, _ := bus(t, brokers)
		ctx := t.Context()
		if err := b.EnsureTopic(ctx, 1); err != nil {
			t.Fatalf("a topic that is there is fine: %v", err)
		}
		if got, err := b.ReadMarks(ctx); err != nil || len(got) != 0 {
			t.Fatalf("an empty topic: %v, %v", got, err)
		}
		check(t, b.PutMark(ctx, Mark{Instance: "b", Incarnation: run(1), DeadlineMs: NoDeadline, By: "ops"}))
		check(t, b.PutMark(ctx, Mark{Instance: "a", Incarnation: run(2), Now: true}))
		check(t, b.PutMark(ctx, Mark{Instance: "b", Incarnation: run(1), DeadlineMs: 99}))
		check(t, b.Hello(ctx, Hello{Instance: "b", Incarnation: run(3)}))
		check(t, b.PutStatus(ctx, Status{Instance: "b", Incarnation: run(1), State: Starting}))
		check(t, b.PutStatus(ctx, Status{Instance: "b", Incarnation: run(1), State: Running, Active: []string{"0_1"}}))

		marks, err := b.ReadMarks(ctx)
		check(t, err)
		want := []Mark{
			{Version: 1, Instance: "a", Incarnation: run(2), Now: true},
			{Version: 1, Instance: "b", Incarnation: run(1), DeadlineMs: 99},
		}
		if fmt.Sprint(marks) != fmt.Sprint(want) {
			t.Errorf("marks %+v, want %+v", marks, want)
		}
		statuses, err := b.ReadStatuses(ctx)
		check(t, err)
		if len(statuses) != 1 || statuses[0].State != Running || statuses[0].Stale(time.Now()) || !statuses[0].Stale(time.Now().Add(time.Minute)) {
			t.Errorf("statuses %+v", statuses)
		}

		check(t, b.Cancel(ctx, "b", run(1)))
		if marks, err = b.ReadMarks(ctx); err != nil || len(marks) != 1 || marks[0].Instance != "a" {
			t.Errorf("after a cancellation: %+v, %v", marks, err)
		}
		if b.PutMark(ctx, Mark{}) == nil || b.Cancel(ctx, "", run(1)) == nil {
			t.Error("an empty instance id was written")
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// events collects what a tail delivers, one line each.
type events chan string

func (e events) handler() Handler {
	return Handler{
		Mark: func(m Mark) {
			e <- fmt.Sprintf("mark %s of run %d, deadline %d", m.Instance, m.Incarnation.StartMs, m.DeadlineMs)
		},
		Cancel: func(instance string, inc assign.Incarnation) {
			e <- fmt.Sprintf("cancel %s of run %d", instance, inc.StartMs)
		},
		Hello: func(h Hello) { e <- fmt.Sprintf("hello %s of run %d", h.Instance, h.Incarnation.StartMs) },
	}
}

func (e events) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-e:
			if got != w {
				t.Fatalf("got %q, want %q", got, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no %q", w)
		}
	}
}

// tail runs the bus until the test ends or stop is called.
func tail(t *testing.T, b *Bus, e events) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Run(ctx, e.handler()); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestRun(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		b, logs := bus(t, brokers)
		writer := NewBus(client(t, brokers), strings.TrimSuffix(b.topic, "-control"), slog.New(slog.DiscardHandler))
		ctx := t.Context()

		// What was said before counts only in its last form; hellos of the past not at all.
		check(t, writer.PutMark(ctx, Mark{Instance: "a", Incarnation: run(1), DeadlineMs: 1}))
		check(t, writer.PutMark(ctx, Mark{Instance: "a", Incarnation: run(1), DeadlineMs: 2}))
		check(t, writer.PutMark(ctx, Mark{Instance: "b", Incarnation: run(1), DeadlineMs: 3}))
		check(t, writer.Cancel(ctx, "b", run(1)))
		check(t, writer.Hello(ctx, Hello{Instance: "a", Incarnation: run(1)}))
		seen := make(events, 100)
		stop := tail(t, b, seen)
		seen.expect(t, "mark a of run 1, deadline 2", "cancel b of run 1")

		check(t, writer.Hello(ctx, Hello{Instance: "c", Incarnation: run(4)}))
		check(t, writer.PutMark(ctx, Mark{Instance: "c", Incarnation: run(4), DeadlineMs: 5}))
		check(t, writer.PutMark(ctx, Mark{Instance: "c", Incarnation: run(4), DeadlineMs: 6}))
		check(t, writer.Cancel(ctx, "c", run(4)))
		seen.expect(t, "hello c of run 4", "mark c of run 4, deadline 5", "mark c of run 4, deadline 6", "cancel c of run 4")

		// Garbage is skipped, and what comes after it is not.
		garbage := []*kgo.Record{
			{Key: []byte("x"), Value: []byte("x")},
			{Key: []byte("mark"), Value: []byte("{}")},
			{Key: []byte("mark/"), Value: []byte("{}")},
			{Key: []byte("mark/g"), Value: []byte("{")},
			{Key: []byte("mark/g"), Value: []byte("null")},
			{Key: []byte("mark/g"), Value: []byte("[]")},
			{Key: []byte("mark/g"), Value: []byte(`{"v":1,"instance":"h","incarnation":"1-0-0"}`)},
			{Key: []byte("mark/g"), Value: []byte(`{"v":1,"instance":"g","incarnation":"1"}`)},
			{Key: []byte("mark/g"), Value: []byte(`{"v":1,"instance":"g","incarnation":"1-0-0","deadline_ms":-2}`)},
			{Key: []byte("mark/g"), Value: []byte(`{"v":2,"instance":"g"}`)},
			{Key: []byte("mark/g")}, // a removal that does not say of whose mark
			{Key: []byte("mark/g"), Headers: []kgo.RecordHeader{{Key: incarnationHeader, Value: []byte("x")}}},
			{Key: []byte("hello/g"), Value: []byte("\xff\xfe")},
		}
		for _, r := range garbage {
			r.Topic = b.topic
			check(t, writer.produce(ctx, r))
		}
		check(t, writer.produce(ctx, &kgo.Record{Topic: b.topic, Key: []byte("future/g"), Value: []byte("x")}))
		check(t, writer.PutMark(ctx, Mark{Instance: "d", Incarnation: run(1)}))
		seen.expect(t, "mark d of run 1, deadline 0")
		if got := strings.Count(logs.String(), "skipped a record"); got != len(garbage) {
			t.Errorf("%d of %d records were reported:\n%s", got, len(garbage), logs)
		}

		stop()
		if len(seen) != 0 {
			t.Errorf("also delivered: %q", <-seen)
		}
	})
}

// A read ends at the end of the log although no record is there: the last offsets are those of an aborted
// transaction and its marker, and the first ones are deleted.
func TestReadsEndByPosition(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		b, _ := bus(t, brokers)
		ctx := t.Context()
		check(t, b.PutMark(ctx, Mark{Instance: "a", Incarnation: run(1)}))
		check(t, b.PutMark(ctx, Mark{Instance: "b", Incarnation: run(1)}))
		abort(t, brokers, b.topic)
		if marks, err := b.ReadMarks(ctx); err != nil || len(marks) != 2 {
			t.Fatalf("marks %+v, %v", marks, err)
		}

		seen := make(events, 100)
		tail(t, b, seen)
		seen.expect(t, "mark a of run 1, deadline 0", "mark b of run 1, deadline 0")

		end := make(kadm.Offsets)
		ends, err := kadm.NewClient(b.cl).ListEndOffsets(ctx, b.topic)
		check(t, err)
		o, _ := ends.Lookup(b.topic, ordersPartition)
		end.AddOffset(b.topic, ordersPartition, o.Offset, -1)
		deleted, err := kadm.NewClient(b.cl).DeleteRecords(ctx, end)
		check(t, err)
		check(t, deleted.Error())
		other := NewBus(client(t, brokers), strings.TrimSuffix(b.topic, "-control"), slog.New(slog.DiscardHandler))
		if marks, err := other.ReadMarks(ctx); err != nil || len(marks) != 0 {
			t.Fatalf("after all records were deleted: %+v, %v", marks, err)
		}
		check(t, other.PutMark(ctx, Mark{Instance: "c", Incarnation: run(1)}))
		seen.expect(t, "mark c of run 1, deadline 0")
	})
}

// abort leaves control records, without keys of ours, at the end of partition 0.
func abort(t *testing.T, brokers []string, topic string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(topic))
	check(t, err)
	defer cl.Close()
	check(t, cl.BeginTransaction())
	check(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte("other/x")}).FirstErr())
	check(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
}

// The tail survives that the topic is deleted and created anew: it starts anew as well.
func TestRunOnANewTopic(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		b, _ := bus(t, brokers)
		ctx := t.Context()
		check(t, b.PutMark(ctx, Mark{Instance: "a", Incarnation: run(1)}))
		seen := make(events, 100)
		tail(t, b, seen)
		seen.expect(t, "mark a of run 1, deadline 0")

		if _, err := kadm.NewClient(b.cl).DeleteTopics(ctx, b.topic); err != nil {
			t.Fatal(err)
		}
		other := NewBus(client(t, brokers), strings.TrimSuffix(b.topic, "-control"), slog.New(slog.DiscardHandler))
		for {
			err := other.EnsureTopic(ctx, 1)
			if err == nil {
				break
			}
			t.Logf("not yet: %v", err)
			check(t, sleep(ctx, 100*time.Millisecond))
		}
		check(t, other.PutMark(ctx, Mark{Instance: "b", Incarnation: run(1)}))
		seen.expect(t, "mark b of run 1, deadline 0")
	})
}

func TestPublish(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		b, _ := bus(t, brokers)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		s := Status{Instance: "a", Incarnation: run(1), State: Running}
		done := make(chan error, 1)
		go func() {
			done <- b.Publish(ctx, func() Status { mu.Lock(); defer mu.Unlock(); return s })
		}()
		await := func(want State) {
			t.Helper()
			for {
				got, err := b.ReadStatuses(t.Context())
				check(t, err)
				if len(got) == 1 && got[0].State == want {
					return
				}
				check(t, sleep(t.Context(), 20*time.Millisecond))
			}
		}
		await(Running)
		mu.Lock()
		s.State = Draining
		mu.Unlock()
		await(Draining)
		stop()
		check(t, <-done)
	})
}

func TestMissingTopic(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		b := NewBus(client(t, brokers), "control-test-missing-"+strings.ToLower(rand.Text()[:6]), slog.New(slog.DiscardHandler))
		if _, err := b.ReadStatuses(t.Context()); !errors.Is(err, ErrNoTopic) {
			t.Errorf("ReadStatuses: %v", err)
		}
		if _, err := b.ReadMarks(t.Context()); !errors.Is(err, ErrNoTopic) {
			t.Errorf("ReadMarks: %v", err)
		}
		if err := b.CheckTopic(t.Context()); !errors.Is(err, ErrNoTopic) || !strings.Contains(err.Error(), "kafka-topics --create") {
			t.Errorf("CheckTopic: %v", err)
		}
	})
}

func TestCreationRefused(t *testing.T) {
	c := fake(t)
	c.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		create := req.(*kmsg.CreateTopicsRequest)
		resp := create.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic = create.Topics[0].Topic
		topic.ErrorCode = kerr.TopicAuthorizationFailed.Code
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	b := NewBus(client(t, c.ListenAddrs()), "words", slog.New(slog.DiscardHandler))
	err := b.EnsureTopic(t.Context(), 3)
	if !errors.Is(err, kerr.TopicAuthorizationFailed) ||
		!strings.Contains(err.Error(), "kafka-topics --create --topic words-control --partitions 2 --replication-factor 3 --config cleanup.policy=compact,delete") {
		t.Errorf("the error names no way out: %v", err)
	}
}

func TestUnfitTopic(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers []string) {
		for name, c := range map[string]struct {
			partitions int32
			policy     string
			want       error
		}{
			"one partition": {1, "compact", ErrUnfitTopic},
			"not compacted": {2, "delete", ErrUnfitTopic},
			"compacted":     {2, "compact", nil},
			"more of them":  {3, "compact,delete", nil},
		} {
			cl := client(t, brokers)
			adm := kadm.NewClient(cl)
			b := NewBus(cl, "control-test-unfit-"+strings.ToLower(rand.Text()[:6]), slog.New(slog.DiscardHandler))
			_, err := adm.CreateTopic(t.Context(), c.partitions, 1, map[string]*string{"cleanup.policy": &c.policy}, b.topic)
			check(t, err)
			if err := b.EnsureTopic(t.Context(), 1); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if err := b.CheckTopic(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("%s, checked only: %v", name, err)
			}
			if _, err := adm.DeleteTopics(t.Context(), b.topic); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestUnreachableKafka(t *testing.T) {
	c := fake(t)
	addrs := c.ListenAddrs()
	c.Close()
	b := NewBus(client(t, addrs), "words", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.ReadStatuses(ctx); err == nil {
		t.Error("a read without Kafka succeeded")
	}
	if err := b.PutStatus(ctx, Status{Instance: "a"}); err == nil {
		t.Error("a write without Kafka succeeded")
	}
	if err := b.Run(ctx, Handler{}); err != nil {
		t.Errorf("the tail gives up: %v", err)
	}
}

// What was read once is not read again, and what comes is there at the next read.
func TestLatest(t *testing.T) { onEachKafka(t, testLatest) }

func testLatest(t *testing.T, brokers []string) {
	b, _ := bus(t, brokers)
	ctx := t.Context()
	latest := NewLatest(b)
	read := func() map[string]State {
		t.Helper()
		all, err := latest.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]State{}
		for _, s := range all {
			out[s.Instance] = s.State
		}
		return out
	}
	put := func(instance string, state State) {
		t.Helper()
		if err := b.PutStatus(ctx, Status{Instance: instance, State: state}); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); len(got) != 0 {
		t.Errorf("before anybody spoke: %v", got)
	}
	put("a", Starting)
	put("b", Running)
	if got := read(); got["a"] != Starting || got["b"] != Running {
		t.Errorf("%v", got)
	}
	put("a", Draining)
	if got := read(); got["a"] != Draining || got["b"] != Running {
		t.Errorf("%v", got)
	}
	cursor := <-latest.my
	before := cursor.cursor.next
	latest.my <- cursor
	if got := read(); len(got) != 2 {
		t.Errorf("with nothing new: %v", got)
	}
	if cursor := <-latest.my; cursor.cursor.next != before {
		t.Errorf("read from %d on again", cursor.cursor.next)
	}
}

// A write that brokers got and did not answer ends with its context: an instance that is to stop does not wait for them.
func TestWriteEndsThoughBrokersAreGone(t *testing.T) {
	c := fake(t)
	b, _ := bus(t, c.ListenAddrs())
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("gone"), true // the connection ends without an answer
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := b.PutStatus(ctx, Status{Instance: "a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the write ended with %v, want the context's end", err)
	}
}
