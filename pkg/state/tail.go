package state

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Batch is what a Reader found at a position of a changelog.
type Batch struct {
	Topic     string
	Partition int32
	// Records are the data records: no control records, none of aborted or open transactions. There may
	// be none though Next has moved on.
	Records []*kgo.Record
	Next    int64 // the position after the records: next offset to read

	HighWatermark int64 // end of the log as of this read
	LogStart      int64 // first offset of the log as of this read

	// Err says why the partition cannot be read any further: ErrOutOfRange, ErrTopicChanged, or an error
	// of the broker such as a refused authorization. Records and Next mean nothing then.
	Err error

	Done func() // has to be called, from any goroutine: only then the partition is read on
}

// tail is one partition being read. Its fields belong to the reader's loop, under Reader.mu, except for
// pending, which Done clears.
type tail struct {
	topic     string
	partition int32
	deliver   func(Batch)

	position int64
	topicID  [16]byte // zero: not known yet
	leader   int32    // -1: not known
	fetching bool
	stopped  bool        // an error was delivered
	pending  atomic.Bool // a batch was delivered and is not done

	// alone asks for a fetch of this partition only: it came back empty though the log goes on, either
	// for lack of room in the answer or because compaction has left nothing there.
	alone    bool
	caughtUp bool // the last fetch reached the end
	urgent   bool // the stream waits for it

	heardAt  time.Time // of the latest batch delivered
	heardEnd int64     // its high watermark
	retryAt  time.Time
	failures int
	warnedAt time.Time
}

const (
	leaderUnknown = -1
	firstBackoff  = 50 * time.Millisecond
	lastBackoff   = 2 * time.Second
	warnEvery     = 30 * time.Second
	aliveEvery    = 30 * time.Second // an idle tail is told that it is still at the end
)

// failed puts the next fetch off, longer each time.
func (t *tail) failed(now time.Time) {
	t.retryAt = now.Add(min(lastBackoff, firstBackoff<<min(t.failures, 10)))
	t.failures++
}

// warn tells whether a lasting failure is to be logged (again).
func (t *tail) warn(now time.Time) bool {
	if t.failures < 3 || now.Sub(t.warnedAt) < warnEvery {
		return false
	}
	t.warnedAt = now
	return true
}

// stop delivers an error after which the partition is not read.
func (t *tail) stop(err error, start, end int64) {
	t.stopped = true
	t.deliver(Batch{Topic: t.topic, Partition: t.partition, LogStart: start, HighWatermark: end, Err: err, Done: func() {}})
}

// take moves the position on and delivers what was fetched, if it says anything new.
func (t *tail) take(f *fetched, now time.Time, wake func()) {
	t.failures, t.retryAt = 0, time.Time{}
	next := f.next
	stable := min(f.end, f.stable)
	empty := f.size == 0 && stable > t.position
	switch {
	case empty && f.alone:
		next = stable // nothing is left between
	case empty:
		t.alone = true
		return
	case f.size > 0 && next == t.position:
		t.failed(now) // an incomplete batch: ask again
		return
	}
	t.alone = false
	t.caughtUp = next >= stable
	news := next != t.position || f.end != t.heardEnd
	t.position = next
	if !news && now.Sub(t.heardAt) < aliveEvery {
		return
	}
	t.heardAt, t.heardEnd = now, f.end
	t.pending.Store(true)
	t.deliver(Batch{
		Topic: t.topic, Partition: t.partition, Records: f.records, Next: next,
		HighWatermark: f.end, LogStart: f.start,
		Done: func() {
			t.pending.Store(false)
			wake()
		},
	})
}
