package tasks

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What all tasks together may have waiting in bytes, and what each of them may at least and at most before its partitions
// are paused. They go on at half of it. A fetch that is under way when a task is paused comes for nothing, so its part for
// one partition is small beside this (FetchMaxPartitionBytes).
const (
	inboxesBytes  = 8 << 20
	inboxMinBytes = 256 << 10
	inboxMaxBytes = 4 << 20
	recordBytes   = 200 // of a record in memory, without what it refers to
)

// inboxShare is what each of n sources may have waiting.
func inboxShare(n int) int {
	return min(inboxMaxBytes, max(inboxMinBytes, inboxesBytes/max(1, n)))
}

// inputBatch is what one fetch brought for one source of a task, or tells that the source goes on elsewhere.
type inputBatch struct {
	source  int
	epoch   uint64 // of the activation that asked for it
	records []*kgo.Record
	bytes   int   // that the records take
	end     int64 // the partition's high watermark at the fetch
	moved   bool  // there are no records: those that follow begin at an offset that does not follow from the ones before
	to      int64 // that offset
}

// bytesOf is the memory that records take.
func bytesOf(recs []*kgo.Record) int {
	n := recordBytes * len(recs)
	for _, r := range recs {
		n += len(r.Key) + len(r.Value)
	}
	return n
}

// inbox holds a task's input between the consumer's goroutine and the task's own.
type inbox struct {
	total  *backlog
	mu     sync.Mutex
	atHand int // bytes of batches that the task has taken, until it is done with all of each: their records lie side by side
	queue  []inputBatch
	bytes  int // of the batches in it
	share  int // the bytes at which it was paused
	paused bool
	let    uint64 // sources, by bit, that are let in although the others are paused
}

// put appends a batch. If the inbox has more than its share then, it calls pause, under the lock, so that pause and resume
// keep their order.
func (b *inbox) put(in inputBatch, share int, pause func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, in)
	b.bytes += in.bytes
	b.total.add(in.bytes)
	if (!b.paused || b.let != 0) && b.bytes > share {
		b.paused, b.let, b.share = true, 0, share
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
	b.bytes -= in.bytes
	b.atHand += in.bytes
	if b.paused && b.bytes <= b.share/2 {
		b.paused, b.let = false, 0
		resume()
	}
}

// done says that the task no longer needs a batch of so many bytes.
func (b *inbox) done(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes = min(bytes, b.atHand) // the rest was dropped
	b.atHand -= bytes
	b.total.add(-bytes)
}

// drop forgets everything that waits, or that the task has at hand.
func (b *inbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total.add(-b.bytes - b.atHand)
	b.queue, b.bytes, b.atHand, b.paused, b.let = nil, 0, 0, false, 0
}

// empty says whether nothing waits.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) == 0
}
