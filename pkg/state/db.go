package state

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// DB is the open state of one task.
//
// Locking: applying, then closing, then mu. The stores' rows take no lock: they belong to the goroutine
// that runs the task, as do Freeze, Trim, Discard, Reset and ApplyChangelog, which change them.
type DB struct {
	engine *Engine
	task   string
	dir    string
	log    *slog.Logger
	specs  []StoreSpec
	stores []*Store

	closed   atomic.Bool
	failure  atomic.Pointer[error] // the first error after which the database must not be used
	failed   chan struct{}         // closed then
	frozen   uint32                // number of the last freeze
	applied  atomic.Uint32         // number of the last freeze that Pebble holds
	replayed atomic.Bool           // changelog records have gathered, for which there are no rows

	applying sync.Mutex   // held by whatever writes to Pebble: one batch at a time, in order
	closing  sync.RWMutex // held for reading around every use of pebble
	pebble   *pebble.DB
	writes   atomic.Uint64 // batches committed to pebble

	mu struct {
		sync.Mutex
		checkpoints  []checkpoint
		written      []checkpoint // as Pebble holds them
		outstanding  []*Changes   // frozen and not in Pebble, oldest first
		pending      int          // so many of them are applied
		pendingBytes int64
		pendingSince time.Time // when the first of them was applied, or positions moved; zero: Pebble holds all that was applied
		iterators    map[*Iterator]struct{}
		unflushed    int64 // bytes applied since the last flush
	}
}

// Store returns the store with this name, or nil.
func (d *DB) Store(name string) *Store {
	for i, spec := range d.specs {
		if spec.Name == name {
			return d.stores[i]
		}
	}
	return nil
}

// Checkpoint returns the position in each store's changelog up to which the state on disk or in Pebble's
// memory holds it: the next offset to apply, 0 if there is nothing.
func (d *DB) Checkpoint() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	positions := make([]int64, len(d.mu.checkpoints))
	for i, c := range d.mu.checkpoints {
		positions[i] = c.position
	}
	return positions
}

// Freeze cuts the writes since the last Freeze off and returns them, nil if there were none. Reads go
// on to see them. Each result has to be given to Apply, in order, or all to Discard.
func (d *DB) Freeze() *Changes {
	c, _ := d.FreezeEach(func(int, iter.Seq2[[]byte, []byte]) error { return nil })
	return c
}

// FreezeEach is Freeze, store by store in the order of the specs. It calls then for each store that has changes, with those:
// the last value of each key, nil if it was deleted, in order of the key. Then may write to the stores that come later,
// whose changes these become. After its error, which is returned, the writes can only be discarded.
func (d *DB) FreezeEach(then func(store int, changes iter.Seq2[[]byte, []byte]) error) (*Changes, error) {
	dirty := 0
	for _, s := range d.stores {
		dirty += len(s.rows.dirty)
	}
	d.Trim()
	if dirty == 0 {
		return nil, nil
	}
	d.frozen++
	c := &Changes{number: d.frozen, stores: make([]storeChanges, len(d.stores))}
	for i, s := range d.stores {
		if len(s.rows.dirty) == 0 {
			continue
		}
		c.stores[i] = s.rows.freeze(d.frozen)
		if err := then(i, c.stores[i].each); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	d.mu.outstanding = append(d.mu.outstanding, c)
	d.mu.Unlock()
	return c, nil
}

// Trim gives back the memory of rows that are not needed, if all tasks together have too much of it. Freeze does the same.
func (d *DB) Trim() {
	for _, s := range d.stores {
		s.rows.trim()
		if err := s.endScans(); err != nil {
			d.fail(fmt.Errorf("state of task %s, store %s: ending a scan: %w", d.task, d.specs[s.index].Name, err))
		}
	}
}

// Apply makes changes part of the state, together with the positions: per store, the position in its changelog after these
// writes. The changes have to be the oldest ones that were not applied. It may be called while the task writes on. With nil
// changes it only moves the positions on. What was applied gets to Pebble when enough has gathered, or after a second.
//
// It is the task's active owner that calls Apply, so the state is taken to be the changelog's end.
func (d *DB) Apply(c *Changes, positions []int64) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	limit := d.engine.pendingLimit()
	d.mu.Lock()
	if c != nil {
		switch slices.Index(d.mu.outstanding[d.mu.pending:], c) {
		case 0:
		case -1:
			d.mu.Unlock()
			return ErrDiscarded
		default:
			d.mu.Unlock()
			return fmt.Errorf("state of task %s: changes applied out of order", d.task)
		}
	}
	next, err := d.moved(positions)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	d.gathered(c, next, d.engine.cfg.Now())
	due := d.mu.pendingBytes >= limit
	d.mu.Unlock()
	if !due {
		return nil
	}
	return d.writePending()
}

// moved returns the checkpoints as of now with new positions. The caller holds mu.
func (d *DB) moved(positions []int64) ([]checkpoint, error) {
	next := slices.Clone(d.mu.checkpoints)
	if len(positions) != len(next) {
		return nil, fmt.Errorf("state of task %s: %d positions for %d stores", d.task, len(positions), len(next))
	}
	for i, p := range positions {
		if p < next[i].position {
			return nil, fmt.Errorf("state of task %s, store %s: position would go back from %d to %d", d.task, d.specs[i].Name, next[i].position, p)
		}
		next[i].position, next[i].asOf = p, d.engine.cfg.Now()
	}
	return next, nil
}

func (c *Changes) batchSize() int {
	const header, perKey, perStore = 16, 10, 128
	size := header
	for i := range c.stores {
		size += perStore + len(c.stores[i].data) + perKey*len(c.stores[i].list)
	}
	return size
}

// writeChange adds one change of a store to the batch; a nil value deletes the key.
func writeChange(batch *pebble.Batch, prefix, key, value []byte) error {
	if value == nil {
		op := batch.DeleteDeferred(prefixLen + len(key))
		copy(op.Key[copy(op.Key, prefix):], key)
		return op.Finish()
	}
	op := batch.SetDeferred(prefixLen+len(key), len(value))
	copy(op.Key[copy(op.Key, prefix):], key)
	copy(op.Value, value)
	return op.Finish()
}

// commit adds the checkpoints to the batch and writes it to Pebble, which must hold all that was applied before, or gets it
// with this batch. The caller holds applying and closing.
func (d *DB) commit(batch *pebble.Batch, next []checkpoint) error {
	for i, c := range next {
		if err := batch.Set(checkpointKey(d.specs[i].Name), c.encode(), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	size := int64(batch.Len())
	if err := batch.Commit(pebble.NoSync); err != nil {
		return errors.Join(err, batch.Close())
	}
	d.writes.Add(1)
	d.mu.Lock()
	d.mu.checkpoints = next
	d.mu.written = slices.Clone(next)
	d.mu.unflushed += size
	large := d.mu.unflushed >= d.engine.cfg.FlushBytes
	d.mu.Unlock()
	d.engine.applied(size, large)
	return batch.Close()
}

// Discard drops all writes that were not applied, frozen ones too.
func (d *DB) Discard() {
	d.applying.Lock() // an Apply under way counts as done
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	d.discard()
}

// discard drops what was not applied, and what was applied too if it cannot be written. The caller holds applying and closing.
func (d *DB) discard() {
	err := d.usable()
	if err == nil {
		err = d.writePending()
	}
	d.mu.Lock()
	if err != nil {
		d.mu.checkpoints = slices.Clone(d.mu.written)
	}
	d.mu.outstanding, d.mu.pending, d.mu.pendingBytes, d.mu.pendingSince = nil, 0, 0, time.Time{}
	d.replayed.Store(false)
	d.mu.Unlock()
	for _, s := range d.stores {
		s.rows.clear()
	}
}

// Reset drops the content and the checkpoint of the stores with these indexes, all if none are named,
// so that they are rebuilt from the start of their changelogs. It discards as Discard does.
func (d *DB) Reset(reason string, stores ...int) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.discard()
	if len(stores) == 0 {
		for i := range d.stores {
			stores = append(stores, i)
		}
	}
	return d.drop(reason, stores)
}

// drop empties stores. The caller holds applying and closing, or has the DB alone.
func (d *DB) drop(reason string, stores []int) error {
	d.mu.Lock()
	next := slices.Clone(d.mu.checkpoints)
	d.mu.Unlock()
	batch := d.pebble.NewBatch()
	for _, i := range stores {
		prefix := d.stores[i].prefix
		if err := batch.DeleteRange(prefix, prefixEnd(prefix), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
		d.log.Warn("the store is rebuilt from the start of its changelog", "store", d.specs[i].Name, "reason", reason, "position", next[i].position)
		d.engine.cfg.Events.Rebuilt(d.task, d.specs[i].Name, reason)
		next[i].position, next[i].topicID = 0, d.specs[i].TopicID
	}
	if err := d.commit(batch, next); err != nil {
		return err
	}
	for _, i := range stores {
		s := d.stores[i]
		s.rows.clear()
		s.forget()
		s.keys = newFilter(&d.engine.rows)
		s.tailed = false
	}
	return nil
}

// prefixEnd returns the least key above all keys with this store prefix.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		end[i]++
		if end[i] != 0 {
			return end
		}
	}
}

// usable returns why the database may not be used. The caller holds closing.
func (d *DB) usable() error {
	if d.closed.Load() {
		return ErrClosed
	}
	return d.Err()
}

// Err returns the error that has made the state unusable, nil if there is none. Close the DB then.
func (d *DB) Err() error {
	if err := d.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes the first error stick. Pebble calls it from its goroutines, with its locks held.
func (d *DB) fail(err error) {
	if d.failure.CompareAndSwap(nil, &err) {
		close(d.failed)
		d.log.Error("the task's state has failed", "error", err)
		d.engine.cfg.Events.Failed(d.task, err)
	}
}

// readError classifies an error of a read: damage makes the whole state unusable.
func (d *DB) readError(err error) error {
	if pebble.IsCorruptionError(err) {
		d.fail(fmt.Errorf("state of task %s: %w: %w", d.task, ErrCorrupt, err))
		return d.Err()
	}
	return fmt.Errorf("state of task %s: %w", d.task, err)
}
