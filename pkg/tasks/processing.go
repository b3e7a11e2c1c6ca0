package tasks

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Records that are processed before the task looks at its mailbox again, and before others get its slot.
const chunkSize = 1000

// After this long without an answer from the broker a task that closes dirty no longer waits for it.
const flushPatience = 10 * time.Second

// processing is the mode in which a task processes its input.
type processing struct {
	proc     *topology.Processor
	counted  topology.Counters // of proc, already in the totals
	epoch    uint64            // of the activation; batches of another one are dropped
	offsets  []int64           // per source: the next offset to process
	moved    bool              // offsets changed since the last freeze
	admitted bool              // the order that it was opened for stands; before that input waits
	stopped  bool              // told to release: nothing more is processed
	held     bool              // between two transactions: output waits
	ahead    int               // records processed since then

	batch  inputBatch // what is left of the batch being processed
	out    []*kgo.Record
	wrote  bool // something of out was produced since the last freeze
	flush  *flush
	frozen []*frozen // cut off and not applied yet, oldest first; two at most
	// onFlushed is set by a stop: it is called whenever a piece of frozen work is flushed.
	onFlushed func()

	stall         stall
	lastProcessed time.Time
	takeover      *takeover // set until the first records after a take are measured
}

// frozen is a task's work from one freeze to the next: what one commit makes permanent.
type frozen struct {
	changes  *state.Changes
	offsets  []int64
	flush    *flush
	flushed  bool
	produced bool // something was written to Kafka
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
	stores := make([]topology.Store, len(t.sub.Stores))
	for i := range stores {
		stores[i] = t.db.Store(t.sub.Stores[i].Name)
	}
	a := &processing{epoch: epoch, offsets: offsets, flush: newFlush(len(stores)), takeover: tk, held: t.env.cfg.Transactions != nil}
	proc, err := t.sub.NewProcessor(stores, a)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.id, err)
	}
	a.proc = proc
	t.active = a
	return nil
}

// admit lets the task process, writing with the producer.
func (t *task) admit(epoch uint64, p *kgo.Client) {
	t.producer = p
	if a := t.active; a != nil && a.epoch == epoch {
		a.admitted = true
	}
}

// Emit takes a record that the topology writes. It goes to the producer after the chunk.
func (a *processing) Emit(r *kgo.Record) { a.out = append(a.out, r) }

// processNext processes one chunk of input, if there is any and the task may. It says whether it did.
func (t *task) processNext() bool {
	a := t.active
	if a == nil || !a.admitted || a.stopped || t.waitsFor(time.Now()) > 0 {
		return false
	}
	for len(a.batch.records) == 0 {
		var ok bool
		a.batch, ok = t.inbox.next(func() { t.env.input.resume(t.sub.sources(t.id)) })
		if !ok {
			return false
		}
		if a.batch.epoch != a.epoch {
			a.batch.records = nil
		}
		// Read ahead of the token: the former owner has processed these.
		for len(a.batch.records) > 0 && a.batch.records[0].Offset < a.offsets[a.batch.source] {
			a.batch.records = a.batch.records[1:]
		}
	}
	n := min(len(a.batch.records), chunkSize)
	t.env.cpu <- struct{}{}
	done, err := t.process(a, a.batch.records[:n])
	<-t.env.cpu
	a.batch.records = a.batch.records[done:]
	t.produce(a)
	if done > 0 {
		t.clearStall(a)
	}
	if err != nil {
		t.failInput(a, err)
	}
	return true
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
	t.env.totals.skipped.Add(int64(a.proc.Skipped - a.counted.Skipped))
	t.env.totals.deadLettered.Add(int64(a.proc.DeadLettered - a.counted.DeadLettered))
	t.env.totals.dropped.Add(int64(a.proc.NullKeys + a.proc.NullValues - a.counted.NullKeys - a.counted.NullValues))
	a.counted = a.proc.Counters
	return done, err
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
	if len(a.batch.records) <= len(recs) && t.inbox.empty() || k.info.Records > 10*chunkSize {
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

// freeze cuts off what was done since the last freeze, sends its changelog records, and calls done on
// the task's goroutine when the broker has answered all of it. A careful task sends them when its output is
// written: the changes of work that fails would be counted once more when the task is opened anew.
func (t *task) freeze(a *processing, done func(*frozen)) {
	f := &frozen{offsets: append([]int64(nil), a.offsets...), flush: a.flush, produced: a.wrote}
	a.flush = newFlush(len(t.sub.Stores))
	a.moved, a.wrote = false, false
	if t.db != nil {
		f.changes = t.db.Freeze()
	}
	a.frozen = append(a.frozen, f)
	flushed := func() {
		f.flushed = true
		done(f)
		if a.onFlushed != nil {
			a.onFlushed()
		}
	}
	if !t.careful {
		t.produceChanges(f)
		f.flush.seal(func() { t.box.post(flushed) })
		return
	}
	f.flush.seal(func() {
		t.box.post(func() {
			if t.active != a || f.flush.err() != nil {
				flushed()
				return
			}
			f.flush = newFlush(len(t.sub.Stores))
			t.produceChanges(f)
			f.flush.seal(func() { t.box.post(flushed) })
		})
	})
}

// produceChanges sends what has changed to the changelogs.
func (t *task) produceChanges(f *frozen) {
	if f.changes == nil || f.changes.Len() == 0 {
		return
	}
	f.produced = true
	t.env.wrote.Store(true)
	n := f.changes.Len()
	recs := make([]kgo.Record, n)
	promises := make([]func(*kgo.Record, error), len(t.sub.Stores))
	for i := range promises {
		promises[i] = f.flush.changelogPromise(i)
	}
	f.flush.pending.Add(int64(n))
	now, i := time.Now(), 0
	f.changes.Each(func(store int, key, value []byte) {
		recs[i] = kgo.Record{Topic: t.sub.Stores[store].Changelog, Partition: t.id.Partition, Key: key, Value: value, Timestamp: now}
		t.producer.Produce(t.ctx, &recs[i], promises[store])
		i++
	})
	t.env.totals.changes.Add(int64(n))
}

// positions are how far the changelogs reach after the first n frozen pieces of work.
func (t *task) positions(a *processing, n int) []int64 {
	pos := make([]int64, len(t.sub.Stores))
	if t.db != nil {
		copy(pos, t.db.Checkpoint())
	}
	for _, f := range a.frozen[:n] {
		for i := range pos {
			pos[i] = max(pos[i], f.flush.next[i].Load())
		}
	}
	return pos
}

// applyUntil writes to the store what was committed: the frozen work up to and including last.
func (t *task) applyUntil(last *frozen) error {
	a := t.active
	if a == nil {
		return nil
	}
	for len(a.frozen) > 0 {
		f := a.frozen[0]
		if f.changes != nil && f.changes.Len() > 0 {
			if err := t.db.Apply(f.changes, t.positions(a, 1)); err != nil {
				return fmt.Errorf("writing the state of task %s: %w", t.id, err)
			}
		}
		a.frozen = a.frozen[1:]
		if f == last {
			break
		}
	}
	return nil
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
