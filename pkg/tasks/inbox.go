package tasks

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What a task may have waiting before its partitions are paused: records, and bytes of their keys and values.
// They go on at a quarter of it.
const (
	inboxHigh  = 20_000
	inboxLow   = inboxHigh / 4
	inboxBytes = 16 << 20
)

// inputBatch is what one fetch brought for one source of a task.
type inputBatch struct {
	source  int
	epoch   uint64 // of the activation that asked for it
	records []*kgo.Record
	bytes   int   // of keys and values
	end     int64 // the partition's high watermark at the fetch
}

// inbox holds a task's input between the consumer's goroutine and the task's own.
type inbox struct {
	mu     sync.Mutex
	queue  []inputBatch
	queued int // records
	bytes  int
	paused bool
	let    uint64 // sources, by bit, that are let in although the others are paused
}

// put appends a batch. If the inbox is full it calls pause, under the lock, so that pause and resume keep
// their order.
func (b *inbox) put(in inputBatch, pause func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, in)
	b.queued += len(in.records)
	b.bytes += in.bytes
	if (!b.paused || b.let != 0) && (b.queued > inboxHigh || b.bytes > inboxBytes) {
		b.paused, b.let = true, 0
		pause()
	}
}

// letIn calls resume if the source's partition is paused because the inbox is full.
func (b *inbox) letIn(source int, resume func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bit := uint64(1) << (source % 64); b.paused && b.let&bit == 0 {
		b.let |= bit
		resume()
	}
}

// nextOf is next for the batches of one source.
func (b *inbox) nextOf(source int, resume func()) (inputBatch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.queue {
		if b.queue[i].source == source {
			in := b.queue[i]
			b.queue = slices.Delete(b.queue, i, i+1)
			b.taken(in, resume)
			return in, true
		}
	}
	return inputBatch{}, false
}

// next removes the oldest batch, and calls resume once the inbox has room again.
func (b *inbox) next(resume func()) (inputBatch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return inputBatch{}, false
	}
	in := b.queue[0]
	b.queue[0] = inputBatch{}
	b.queue = b.queue[1:]
	b.taken(in, resume)
	return in, true
}

func (b *inbox) taken(in inputBatch, resume func()) {
	b.queued -= len(in.records)
	b.bytes -= in.bytes
	if b.paused && b.queued < inboxLow && b.bytes < inboxBytes/4 {
		b.paused, b.let = false, 0
		resume()
	}
}

// drop forgets everything that waits.
func (b *inbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.queued, b.bytes, b.paused, b.let = nil, 0, 0, false, 0
}

// empty says whether nothing waits.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) == 0
}
