package tasks

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func streamsFrom(from string) string { return strings.Replace(countStreams, "topic: in", from, 1) }

// gone makes a topic of 100 records of which the first half is deleted, with an offset in it committed.
func (r *rig) gone() {
	r.t.Helper()
	r.send(0, 50, 5)
	r.sent = map[string]int64{}
	r.send(0, 50, 5)
	if err := r.cluster.DeleteRecords("in", 0, 50); err != nil {
		r.t.Fatal(err)
	}
	r.ledger.write("in", 0, 10, handover.Metadata{Committer: "other"})
}

func TestOffsetThatIsGoneFails(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.gone()
	r.plan(1, own(id(0)))
	r.await("the task says why it stands still", func() bool {
		st := r.m.Status().Tasks
		return len(st) == 1 && errors.Is(st[0].Err, ErrOffsetGone) && st[0].Failures > 1
	})
	// It can be handed over as it stands.
	r.plan(2, releaseOf(id(0), 2))
	r.awaitPhase(id(0), handover.Released)
	if off := r.ledger.offset("in", 0); off != 10 || r.m.Totals().RecordsIn != 0 {
		t.Fatalf("released at %d with %d records processed", off, r.m.Totals().RecordsIn)
	}
}

// The client goes on to report the offset while the manager asks where to go on; it must move the task once.
func TestOffsetThatIsGoneMovesOnce(t *testing.T) {
	for _, tc := range []struct {
		policy string
		skips  bool
	}{{policy: "earliest"}, {policy: "latest", skips: true}} {
		t.Run(tc.policy, func(t *testing.T) {
			r := newRig(t, streamsFrom("topic: in, on_out_of_range: "+tc.policy), 1).start()
			r.gone()
			if tc.skips {
				r.sent = map[string]int64{}
			}
			asked, answer := atomic.Int64{}, make(chan struct{})
			r.logs.intercept(func(what string, parts []TopicPartition) error {
				if parts[0].Topic == "in" {
					asked.Add(1)
					<-answer
				}
				return nil
			})
			r.plan(1, own(id(0)))
			r.await("it is asked where to go on", func() bool { return asked.Load() > 0 })
			time.Sleep(100 * time.Millisecond) // for fetches that ought not to be made
			close(answer)
			r.await("the task has moved", func() bool { off := r.ledger.offset("in", 0); return off == 100 })
			r.send(0, 50, 5)
			r.awaitCounts()
			r.awaitCommitted(0, 150)
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if n := r.m.Totals().RecordsIn; n != 100 && !tc.skips || n != 50 && tc.skips {
				t.Errorf("%d records processed", n)
			}
		})
	}
}

// The task is closed after it was decided where it goes on, and before it hears of it.
func TestOffsetThatIsGoneDuringAClose(t *testing.T) {
	r := newRig(t, streamsFrom("topic: in, on_out_of_range: earliest"), 1).start()
	r.gone()
	asked, answer := atomic.Int64{}, make(chan struct{})
	r.logs.intercept(func(what string, parts []TopicPartition) error {
		if parts[0].Topic == "in" && asked.Add(1) == 1 {
			<-answer
		}
		return nil
	})
	r.plan(1, own(id(0)))
	r.await("it is asked where to go on", func() bool { return asked.Load() > 0 })
	hold := make(chan struct{})
	var task *task
	r.inside(func() {
		task = r.m.slots[id(0)].task
		task.box.post(func() { <-hold })
	})
	close(answer)
	r.await("the task is told", func() bool { return !task.inbox.empty() })
	r.m.Lost(nil)
	close(hold)
	<-task.done
	r.ledger.write("in", 0, 60, handover.Metadata{Committer: "other"})
	r.plan(2, own(id(0)))
	r.awaitCommitted(0, 100)
	if n := r.m.Totals().RecordsIn; n != 40 {
		t.Errorf("%d records processed, want the 40 from offset 60 on", n)
	}
}

// What a task has fetched before its place in the topic is deleted is processed, and it goes on behind the gap.
func TestRecordsAtHandBeforeAGap(t *testing.T) {
	r := newRig(t, streamsFrom("topic: in, on_out_of_range: earliest"), 1).start()
	r.plan(1, own(id(0)))
	r.awaitMode(id(0), running)
	hold := make(chan struct{})
	var task *task
	r.inside(func() {
		task = r.m.slots[id(0)].task
		task.box.post(func() { <-hold })
	})
	waiting := func() (records int, moved bool) {
		task.inbox.mu.Lock()
		defer task.inbox.mu.Unlock()
		for _, b := range task.inbox.queue {
			records, moved = records+len(b.records), moved || b.moved
		}
		return records, moved
	}
	r.send(0, 50, 5)
	r.await("records are at hand", func() bool { n, _ := waiting(); return n == 50 })
	r.cfg.Input.PauseFetchPartitions(map[string][]int32{"in": {0}})
	sent := maps.Clone(r.sent)
	r.send(0, 30, 5) // these are never seen
	r.sent = sent
	r.send(0, 20, 5)
	if err := r.cluster.DeleteRecords("in", 0, 80); err != nil {
		t.Fatal(err)
	}
	r.cfg.Input.ResumeFetchPartitions(map[string][]int32{"in": {0}})
	r.await("the gap is found", func() bool { _, moved := waiting(); return moved })
	close(hold)
	r.awaitCommitted(0, 100)
	r.awaitCounts()
}

// Input that cannot be read is no reason to ask for it without a pause, nor to close the task.
func TestInputThatCannotBeRead(t *testing.T) {
	r := newRig(t, countStreams, 2).start()
	r.send(0, 10, 2)
	r.send(1, 10, 2)
	r.plan(1, own(id(0), id(1)))
	r.awaitCommitted(0, 10)
	fault := r.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Topic: "in", Partitions: []int32{0}, Err: kerr.TopicAuthorizationFailed, Count: -1,
	})
	r.await("the task says why it stands still", func() bool {
		for _, st := range r.m.Status().Tasks {
			if st.Task == id(0) && errors.Is(st.Err, kerr.TopicAuthorizationFailed) && st.Failures > 2 {
				return true
			}
		}
		return false
	})
	if n := fault.Hits(); n > 20 {
		t.Errorf("asked %d times", n)
	}
	r.send(0, 10, 2)
	r.send(1, 10, 2)
	r.awaitCommitted(1, 20)
	fault.Remove()
	r.awaitCommitted(0, 20)
	r.awaitCounts()
	r.inside(func() { r.m.recovery = 0 })
	r.await("nothing is wrong any more", func() bool {
		for _, st := range r.m.Status().Tasks {
			if st.Err != nil {
				return false
			}
		}
		return true
	})
}

// A full inbox keeps all sources of its task back, not only the one that filled it.
func TestFullInboxPausesEverySource(t *testing.T) {
	cl := newRig(t, countStreams, 1).cfg.Input
	sub := twoSources()
	task := &task{sub: sub, id: id(3), box: newMailbox()}
	in := newInput(cl)
	parts := sub.sources(task.id)
	for i, tp := range parts {
		in.routes[tp] = route{task: task, source: i}
	}
	in.deliver(fetched(parts[0], 2*inboxMaxBytes/recordBytes+1, 1))
	paused := cl.PauseFetchPartitions(nil)
	if len(paused["a"]) != 1 || len(paused["b"]) != 1 {
		t.Fatalf("paused %v", paused)
	}
	for range 2 {
		task.inbox.next(func() { in.resume(parts) })
	}
	if paused = cl.PauseFetchPartitions(nil); len(paused["a"])+len(paused["b"]) > 0 {
		t.Fatalf("still paused: %v", paused)
	}
	in.deliver(fetched(parts[1], 10, inboxMaxBytes/4))
	if paused = cl.PauseFetchPartitions(nil); len(paused["a"]) != 1 || len(paused["b"]) != 1 {
		t.Fatalf("paused %v by large records", paused)
	}
}

// fetched is what a fetch of n records with values of the given size brings.
func fetched(tp TopicPartition, n, size int) kgo.FetchTopicPartition {
	f := kgo.FetchTopicPartition{Topic: tp.Topic, FetchPartition: kgo.FetchPartition{Partition: tp.Partition}}
	for i := range n {
		f.Records = append(f.Records, &kgo.Record{Offset: int64(i), Value: make([]byte, size)})
	}
	return f
}

// A fetch that is delivered between the end of a task and the removal of its partitions does not count for ever.
func TestInputOfAClosedTask(t *testing.T) {
	in := newInput(newRig(t, countStreams, 1).cfg.Input)
	sub := twoSources()
	task := newTask(id(3), sub, &env{cfg: &Config{Logger: slog.New(slog.DiscardHandler)}, ctx: t.Context(), input: in})
	parts := sub.sources(task.id)
	in.routes[parts[0]] = route{task: task}
	in.remove(task, parts)
	task.close(false, func(error) {})
	in.deliver(fetched(parts[0], 10, 100))
	for _, f := range in.changes {
		f()
	}
	if n := in.backlog.bytes.Load(); n != 0 {
		t.Errorf("%d bytes wait in the inbox of a task that is closed", n)
	}
}
