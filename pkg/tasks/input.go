package tasks

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// input consumes the partitions of the active tasks. One goroutine polls, hands each partition's records
// to its task, and between two polls adds and removes partitions. So a poll never brings records of a
// partition from before it was removed and added again.
type input struct {
	cl      *kgo.Client
	backlog *backlog
	// onFail is told when a partition cannot be read. It is consumed no more until it is added anew.
	onFail func(r route, err error)

	mu        sync.Mutex
	changes   []func()
	interrupt context.CancelFunc

	routes map[TopicPartition]route // of the polling goroutine alone
}

// route says whom a partition's records go to.
type route struct {
	task   *task
	source int
	epoch  uint64
	next   int64 // the first offset wanted
}

func newInput(cl *kgo.Client) *input {
	return &input{cl: cl, backlog: newBacklog(), routes: map[TopicPartition]route{}}
}

// run polls until the context ends.
func (in *input) run(ctx context.Context) {
	for ctx.Err() == nil {
		pollCtx, cancel := context.WithCancel(ctx)
		in.mu.Lock()
		changes := in.changes
		in.changes = nil
		in.interrupt = cancel
		in.mu.Unlock()
		for _, f := range changes {
			f()
		}
		in.backlog.await(pollCtx)
		fetches := in.cl.PollRecords(pollCtx, 0)
		cancel()
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachPartition(in.deliver)
	}
}

// change runs f on the polling goroutine before its next poll, which it begins at once.
func (in *input) change(f func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.changes = append(in.changes, f)
	if in.interrupt != nil {
		in.interrupt()
	}
}

// add begins to consume a task's sources, each at its offset.
func (in *input) add(t *task, epoch uint64, parts []TopicPartition, offsets []int64) {
	in.change(func() {
		add := map[string]map[int32]kgo.Offset{}
		for i, tp := range parts {
			in.routes[tp] = route{task: t, source: i, epoch: epoch, next: offsets[i]}
			if add[tp.Topic] == nil {
				add[tp.Topic] = map[int32]kgo.Offset{}
			}
			add[tp.Topic][tp.Partition] = kgo.NewOffset().At(offsets[i])
		}
		in.cl.AddConsumePartitions(add)
	})
}

// addOne begins to consume one source of a task anew.
func (in *input) addOne(tp TopicPartition, r route) {
	in.change(func() {
		in.routes[tp] = r
		in.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{tp.Topic: {tp.Partition: kgo.NewOffset().At(r.next)}})
	})
}

// remove ends the consumption of a task's sources. Records may still come until the polling goroutine
// has seen to it: then it drops what the task has not taken.
func (in *input) remove(t *task, parts []TopicPartition) {
	in.change(func() {
		var gone []TopicPartition
		for _, tp := range parts {
			if in.routes[tp].task == t {
				delete(in.routes, tp)
				gone = append(gone, tp)
			}
		}
		if len(gone) > 0 {
			in.cl.RemoveConsumePartitions(byTopic(gone))
		}
		t.inbox.drop()   // nobody may ever look at it again, and all tasks wait while too much is in all inboxes
		in.resume(parts) // a pause outlives the removal
	})
}

func (in *input) deliver(p kgo.FetchTopicPartition) {
	tp := TopicPartition{Topic: p.Topic, Partition: p.Partition}
	r, ok := in.routes[tp]
	if !ok {
		return
	}
	recs := p.Records
	for len(recs) > 0 && recs[0].Offset < r.next {
		recs = recs[1:]
	}
	if len(recs) > 0 {
		r.next = recs[len(recs)-1].Offset + 1
		in.routes[tp] = r
		parts := r.task.sub.sources(r.task.id)
		r.task.inbox.put(inputBatch{source: r.source, epoch: r.epoch, records: recs, bytes: bytesOf(recs), end: p.HighWatermark},
			len(parts)*inboxShare(len(in.routes)), func() { in.cl.PauseFetchPartitions(byTopic(parts)) })
		r.task.box.signal()
	}
	if p.Err != nil && !errors.Is(p.Err, context.Canceled) && !errors.Is(p.Err, context.DeadlineExceeded) {
		// The client would ask again at once, and again. The manager adds it anew when there is hope.
		delete(in.routes, tp)
		in.cl.RemoveConsumePartitions(byTopic([]TopicPartition{tp}))
		in.onFail(r, p.Err)
	}
}

// resume lets a task's partitions be fetched again after a pause.
func (in *input) resume(parts []TopicPartition) { in.cl.ResumeFetchPartitions(byTopic(parts)) }

func byTopic(parts []TopicPartition) map[string][]int32 {
	m := make(map[string][]int32, len(parts))
	for _, tp := range parts {
		m[tp.Topic] = append(m[tp.Topic], tp.Partition)
	}
	return m
}
