package tasks

import (
	"fmt"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/state"
)

// frozen is a task's work from one freeze to the next: what one commit makes permanent.
type frozen struct {
	changes  *state.Changes
	offsets  []int64
	flush    *flush
	flushed  bool
	produced bool // something was written to Kafka
}

// freeze cuts off what was done since the last freeze, sends the results that wait for it and its changelog records, and calls
// done on the task's goroutine when the broker has answered all of it. A careful task sends the latter when its output is
// written: the changes of work that fails would be counted once more when the task is opened anew.
func (t *task) freeze(a *processing, done func(*frozen)) {
	changes, err := t.freezeState(a)
	if err != nil {
		a.stopped = true // until the manager closes it
		t.env.failed(t, err)
		return
	}
	f := &frozen{changes: changes, offsets: append([]int64(nil), a.offsets...), flush: a.flush, produced: a.wrote}
	a.flush = newFlush(len(t.sub.Stores))
	a.moved, a.wrote = false, false
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

// freezeState cuts off what has changed in the stores, and writes the results that aggregates have kept for a commit.
func (t *task) freezeState(a *processing) (*state.Changes, error) {
	switch {
	case t.db == nil:
		return nil, nil
	case !a.proc.EmitsAtCommit():
		return t.db.Freeze(), nil
	}
	t.env.cpu <- struct{}{}
	changes, err := t.db.FreezeEach(func(store int, changes iter.Seq2[[]byte, []byte]) error {
		return a.proc.EmitChanges(t.sub.Stores[store].Name, changes)
	})
	<-t.env.cpu
	t.countBad(a)
	if err != nil {
		return nil, fmt.Errorf("committing task %s: %w", t.id, err)
	}
	t.produce(a)
	return changes, nil
}

// produceChanges sends what has changed to the changelogs.
func (t *task) produceChanges(f *frozen) {
	if f.changes == nil || f.changes.Len() == 0 {
		return
	}
	f.produced = true
	t.env.wrote.Store(true)
	n := f.changes.Len()
	promises := make([]func(*kgo.Record, error), len(t.sub.Stores))
	for i := range promises {
		promises[i] = f.flush.changelogPromise(i)
	}
	f.flush.pending.Add(int64(n))
	now := time.Now()
	f.changes.Each(func(store int, key, value []byte) {
		r := t.newRecord()
		r.Topic, r.Partition, r.Key, r.Value, r.Timestamp = t.sub.Stores[store].Changelog, t.id.Partition, key, value, now
		t.producer.Produce(t.ctx, r, promises[store])
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
