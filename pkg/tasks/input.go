package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// input consumes the partitions of the active tasks. One goroutine polls, hands each partition's records
// to its task, and between two polls adds and removes partitions. So a poll never brings records of a
// partition from before it was removed and added again.
type input struct {
	cl     *kgo.Client
	log    *slog.Logger
	onFail func(t *task, epoch uint64, source int, err error)

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

func newInput(cl *kgo.Client, log *slog.Logger) *input {
	return &input{cl: cl, log: log, routes: map[TopicPartition]route{}}
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
func (in *input) addOne(t *task, epoch uint64, source int, tp TopicPartition, offset int64) {
	in.change(func() {
		in.routes[tp] = route{task: t, source: source, epoch: epoch, next: offset}
		in.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{tp.Topic: {tp.Partition: kgo.NewOffset().At(offset)}})
	})
}

// remove ends the consumption of a task's sources. Records may still come until the polling goroutine
// has seen to it; the task drops them by their epoch.
func (in *input) remove(t *task, parts []TopicPartition) {
	in.change(func() {
		gone := map[string][]int32{}
		for _, tp := range parts {
			if in.routes[tp].task != t {
				continue // added again meanwhile, for a task opened anew
			}
			delete(in.routes, tp)
			gone[tp.Topic] = append(gone[tp.Topic], tp.Partition)
		}
		if len(gone) > 0 {
			in.cl.RemoveConsumePartitions(gone)
			in.cl.ResumeFetchPartitions(gone) // a pause outlives the removal
		}
	})
}

func (in *input) deliver(p kgo.FetchTopicPartition) {
	tp := TopicPartition{Topic: p.Topic, Partition: p.Partition}
	r, ok := in.routes[tp]
	if p.Err != nil && !errors.Is(p.Err, context.Canceled) && !errors.Is(p.Err, context.DeadlineExceeded) {
		if ok && errors.Is(p.Err, kerr.OffsetOutOfRange) {
			in.onFail(r.task, r.epoch, r.source, p.Err)
		} else {
			in.log.Warn("fetching input failed; trying again", "topic", p.Topic, "partition", p.Partition, "error", p.Err)
		}
	}
	recs := p.Records
	for len(recs) > 0 && ok && recs[0].Offset < r.next {
		recs = recs[1:]
	}
	if !ok || len(recs) == 0 {
		return
	}
	r.next = recs[len(recs)-1].Offset + 1
	in.routes[tp] = r
	part := map[string][]int32{p.Topic: {p.Partition}}
	r.task.inbox.put(inputBatch{source: r.source, epoch: r.epoch, records: recs, end: p.HighWatermark}, func() {
		in.cl.PauseFetchPartitions(part)
	})
	r.task.box.signal()
}

// resume lets a task's partitions be fetched again after a pause.
func (in *input) resume(parts []TopicPartition) {
	m := map[string][]int32{}
	for _, tp := range parts {
		m[tp.Topic] = append(m[tp.Topic], tp.Partition)
	}
	in.cl.ResumeFetchPartitions(m)
}
