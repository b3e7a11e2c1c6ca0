package tasks

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Records that are processed before the task looks at its mailbox again, and before others get its slot.
const chunkSize = 1000

// After this long without an answer from the broker a task that closes dirty no longer waits for it.
const flushPatience = 10 * time.Second

// processing is the mode in which a task processes its input.
type processing struct {
	task        *task
	proc        *topology.Processor
	counted     topology.Counters // of proc, already in the totals
	countedLate uint64
	epoch       uint64  // of the activation; batches of another one are dropped
	offsets     []int64 // per source: the next offset to process
	moved       bool    // offsets changed since the last freeze
	admitted    bool    // the order that it was opened for stands; before that input waits
	stopped     bool    // told to release: nothing more is processed
	held        bool    // between two transactions: output waits
	ahead       int     // records processed since then

	batch   inputBatch // what is left of the batch being processed
	picking *picking   // of several sources; nil: there is one
	out     []*kgo.Record
	wrote   bool // something of out was produced since the last freeze
	flush   *flush
	frozen  []*frozen // cut off and not applied yet, oldest first; two at most
	// onFlushed is set by a stop: it is called whenever a piece of frozen work is flushed.
	onFlushed func()

	tickAt        time.Time // when timers by the wall clock are due next
	stall         stall
	lastProcessed time.Time
	takeover      *takeover // set until the first records after a take are measured
}

// takeover measures how a task starts after it was taken from another instance.
type takeover struct {
	info     TakeoverInfo
	released time.Time // the former owner's last record; zero: not known
	begun    bool
}

// activate makes the task ready to process, once its state is restored. It does when the manager admits it.
func (t *task) activate(epoch uint64, offsets []int64, tk *takeover) error {
	c := t.copy
	t.stopCopying()
	if c != nil && t.db != nil {
		t.env.cfg.Events.Restored(RestoreInfo{Task: t.id, Records: t.stats.restored.Load(), Took: time.Since(c.since), Local: c.local})
	}
	if t.failed && t.db != nil {
		// Else it would process and commit until the next flush, and fail again as if for the first time.
		if err := t.db.Flush(); err != nil {
			return fmt.Errorf("writing the state of task %s: %w", t.id, err)
		}
	}
	stores := make([]topology.Store, len(t.sub.Stores))
	for i := range stores {
		stores[i] = t.db.Store(t.sub.Stores[i].Name)
	}
	a := &processing{task: t, epoch: epoch, offsets: offsets, flush: newFlush(len(stores)), takeover: tk, held: t.env.cfg.Transactions != nil}
	proc, err := t.sub.NewProcessor(stores, a, t.env.globals.of(t.sub.Globals)...)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.id, err)
	}
	proc.Limits = t.env.cfg.Limits
	proc.SetLogger(t.log)
	if a.proc = proc; len(t.sub.Sources) > 1 {
		a.picking = newPicking(len(t.sub.Sources))
	}
	t.active = a
	t.env.active.Add(1)
	return nil
}

// admit lets the task process, writing with the producer.
func (t *task) admit(epoch uint64, p *kgo.Client) {
	t.producer = p
	if a := t.active; a != nil && a.epoch == epoch {
		a.admitted = true
	}
}

// NewRecord returns memory for a record that the topology writes.
func (a *processing) NewRecord() *kgo.Record { return a.task.newRecord() }

// Emit takes a record that the topology writes. It goes to the producer after the chunk.
func (a *processing) Emit(r *kgo.Record) { a.out = append(a.out, r) }

// processNext processes one chunk of input, if there is any and the task may. It says whether it did.
func (t *task) processNext() bool {
	a := t.active
	if a == nil || !a.admitted || a.stopped || t.waitsFor(time.Now()) > 0 {
		return false
	}
	if len(t.sub.Globals) > 0 && !t.env.globals.loaded(t.box) {
		return false
	}
	if !t.nextBatch(a) {
		return false
	}
	n := min(len(a.batch.records), chunkSize)
	var done int
	var err error
	t.compute(func() { done, err = t.process(a, a.batch.records[:n]) })
	for i, r := range a.batch.records[:done] {
		a.batch.records[i] = nil
		r.Recycle()
	}
	if a.batch.records = a.batch.records[done:]; len(a.batch.records) == 0 {
		t.inbox.done(a.batch.bytes)
	}
	t.produce(a)
	if done > 0 {
		t.clearStall(a)
	}
	if err != nil {
		t.failInput(a, err)
	}
	return true
}

// compute runs f on one of the threads, and counts the time.
func (t *task) compute(f func()) {
	t.env.cpu <- struct{}{}
	start := time.Now()
	f()
	t.env.totals.busy.Add(int64(time.Since(start)))
	<-t.env.cpu
}

// tick calls the timers by the wall clock that are due, and returns the time until the next one; 0: there is none, or the task may
// not process now.
func (t *task) tick(now time.Time) time.Duration {
	a := t.active
	if a == nil || !a.admitted || a.stopped || !a.proc.Ticks() || t.waitsFor(now) > 0 {
		return 0
	}
	if len(t.sub.Globals) > 0 && !t.env.globals.loaded(t.box) {
		return 0
	}
	if now.Before(a.tickAt) {
		return a.tickAt.Sub(now)
	}
	var next time.Time
	var changed bool
	var err error
	t.compute(func() { next, changed, err = a.proc.Tick(now) })
	t.countBad(a)
	if err != nil {
		a.stopped = true // until the manager closes it
		t.env.failed(t, fmt.Errorf("task %s: %w", t.id, err))
		return 0
	}
	a.tickAt, a.moved = next, a.moved || changed
	t.produce(a)
	return max(time.Millisecond, next.Sub(now))
}

// nextBatch makes sure that there is something in the batch. False: there is nothing to do now.
func (t *task) nextBatch(a *processing) bool {
	for len(a.batch.records) == 0 {
		if a.picking != nil {
			return t.pickNext(a)
		}
		b, ok := t.inbox.next(func() { t.env.input.resume(t.sub.sources(t.id)) })
		if !ok {
			return false
		}
		a.batch = t.wanted(a, b)
	}
	return true
}

// wanted takes from a batch what is not to be processed: records of an earlier activation, and those that were read ahead of
// the token and that the former owner has processed. If the source goes on elsewhere, it moves the task there.
func (t *task) wanted(a *processing, b inputBatch) inputBatch {
	switch {
	case b.epoch != a.epoch:
		b.records = nil
	case b.moved:
		a.offsets[b.source], a.moved = b.to, true
	}
	for len(b.records) > 0 && b.records[0].Offset < a.offsets[b.source] {
		b.records = b.records[1:]
	}
	if len(b.records) == 0 {
		t.inbox.done(b.bytes)
	}
	return b
}

// process runs one chunk through the topology and returns how many records are done.
func (t *task) process(a *processing, recs []*kgo.Record) (int, error) {
	err := a.proc.Process(a.batch.source, recs)
	done := a.proc.Done()
	if done > 0 {
		last := recs[done-1]
		a.offsets[a.batch.source] = last.Offset + 1
		a.moved = true
		if a.held {
			a.ahead += done
		}
		a.lastProcessed = time.Now()
		t.stats.records.Add(int64(done))
		t.env.totals.recordsIn.Add(int64(done))
		t.stats.inputLag.Store(max(0, a.batch.end-last.Offset-1))
		t.measureTakeover(a, recs[:done])
	}
	t.countBad(a)
	return done, err
}

// countBad adds to the totals what the processor has passed over.
func (t *task) countBad(a *processing) {
	t.env.totals.skipped.Add(int64(a.proc.Skipped - a.counted.Skipped))
	t.env.totals.deadLettered.Add(int64(a.proc.DeadLettered - a.counted.DeadLettered))
	t.env.totals.dropped.Add(int64(a.proc.NullKeys + a.proc.NullValues - a.counted.NullKeys - a.counted.NullValues))
	t.env.totals.late.Add(int64(a.proc.Late - a.countedLate))
	a.counted, a.countedLate = a.proc.Counters, a.proc.Late
}

// measureTakeover notes the gap at the first records after a take, and the slowest of those that had
// gathered meanwhile.
func (t *task) measureTakeover(a *processing, recs []*kgo.Record) {
	k := a.takeover
	if k == nil {
		return
	}
	if !k.begun {
		k.begun = true
		if !k.released.IsZero() {
			k.info.Gap = max(0, a.lastProcessed.Sub(k.released))
		}
	}
	k.info.Records += len(recs)
	for _, r := range recs {
		k.info.Slowest = max(k.info.Slowest, a.lastProcessed.Sub(r.Timestamp))
	}
	if len(a.batch.records) <= len(recs) && t.inbox.empty() && (a.picking == nil || a.picking.empty()) || k.info.Records > 10*chunkSize {
		t.endTakeover(a)
	}
}

func (t *task) endTakeover(a *processing) {
	k := a.takeover
	a.takeover = nil
	t.env.totals.takeovers.Add(1)
	t.env.cfg.Events.TakenOver(k.info)
}

// produce hands the chunk's output to the producer. It blocks while the producer's buffer is full.
func (t *task) produce(a *processing) {
	if len(a.out) == 0 || a.held {
		return
	}
	a.wrote = true
	t.env.wrote.Store(true)
	a.flush.pending.Add(int64(len(a.out)))
	for i, r := range a.out {
		t.producer.Produce(t.ctx, r, a.flush.promise)
		a.out[i] = nil
	}
	t.env.totals.recordsOut.Add(int64(len(a.out)))
	a.out = a.out[:0]
}

// awaitFlushes waits until nothing that the task produced is on its way any more, so that a later opening
// finds the changelog's true end.
func (a *processing) awaitFlushes() {
	deadline := time.After(flushPatience)
	open := make([]*flush, 0, len(a.frozen)+1)
	for _, f := range a.frozen {
		open = append(open, f.flush)
	}
	last := make(chan struct{})
	a.flush.seal(func() { close(last) })
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		n := int64(0)
		for _, f := range open {
			n += f.pending.Load()
		}
		select {
		case <-last:
			if n == 0 {
				return
			}
		default:
		}
		select {
		case <-tick.C:
		case <-deadline:
			return
		}
	}
}
