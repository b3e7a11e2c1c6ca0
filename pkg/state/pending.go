package state

import (
	"bytes"
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Changes that were applied gather until they are worth a write of their own: the more of them, the more of their keys are
// the same, and a batch that is large beside a memtable goes to a table as it is, sorted, without going through one.
const (
	pendingShare    = 8           // the part of MemtableBytes, and of RowCacheBytes, that they may take in all databases together
	minPendingBytes = 16 << 10    // that each database may take in any case
	replayShare     = 2           // the part of MemtableBytes for changelogs that are replayed, of which more comes at once
	caughtUpBytes   = 64 << 10    // what a copy may have pending that is at its changelog's end: it may be taken at any time
	pendingAge      = time.Second // after which the engine writes them
	changeBytes     = 24          // of a change beside its key and value
)

// pendingLimit is what each database may have pending. Its rows cannot be evicted until then.
func (e *Engine) pendingLimit() int64 {
	return max(minPendingBytes, min(e.cfg.MemtableBytes, e.cfg.RowCacheBytes)/pendingShare/int64(max(1, e.openCount())))
}

// replayLimit is what each database may have pending while it is replayed.
func (e *Engine) replayLimit() int64 {
	return max(minPendingBytes, e.cfg.MemtableBytes/replayShare/int64(max(1, e.openCount())))
}

// gathered notes that changes, if any, are applied and what the checkpoints are by that. The caller holds mu.
func (d *DB) gathered(c *Changes, checkpoints []checkpoint, now time.Time) {
	d.mu.checkpoints = checkpoints
	if d.mu.pendingSince.IsZero() {
		d.mu.pendingSince = now
	}
	if c != nil {
		d.mu.pending++
		d.mu.pendingBytes += c.bytes()
	}
}

// settle writes what has gathered of replayed changelogs: the rows know nothing of it. It may be called at any time
// without a lock.
func (d *DB) settle() error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	return d.writePending()
}

// bytes is the memory that the changes take.
func (c *Changes) bytes() int64 {
	n := 0
	for i := range c.stores {
		n += len(c.stores[i].data) + changeBytes*len(c.stores[i].list)
	}
	return int64(n)
}

// pendingChanges are what was applied and is not in Pebble, oldest first.
func (d *DB) pendingChanges() []*Changes {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.outstanding[:d.mu.pending:d.mu.pending]
}

// writePending writes to Pebble what was applied, in one batch. The caller holds applying and closing.
func (d *DB) writePending() error {
	d.mu.Lock()
	pending, next := d.mu.outstanding[:d.mu.pending], slices.Clone(d.mu.checkpoints)
	none := d.mu.pendingSince.IsZero()
	d.mu.Unlock()
	if none {
		return nil
	}
	size := (&Changes{stores: make([]storeChanges, len(d.stores))}).batchSize()
	for _, c := range pending {
		size += c.batchSize()
	}
	batch := d.pebble.NewBatchWithSize(size)
	for i, s := range d.stores {
		if err := writeMerged(batch, s.prefix, pending, i); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	if err := d.commit(batch, next); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(pending); n > 0 {
		d.applied.Store(pending[n-1].number)
		d.mu.outstanding = slices.Clone(d.mu.outstanding[n:])
	}
	d.mu.pending, d.mu.pendingBytes, d.mu.pendingSince = 0, 0, time.Time{}
	d.replayed.Store(false)
	return nil
}

// writeOld writes what has been pending for a while.
func (d *DB) writeOld(now time.Time) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	d.mu.Lock()
	since := d.mu.pendingSince
	d.mu.Unlock()
	if err := d.usable(); err != nil || since.IsZero() || now.Sub(since) < pendingAge {
		return err
	}
	return d.writePending()
}

// writeMerged adds the last change of each key of a store to the batch, in order of the key.
func writeMerged(batch *pebble.Batch, prefix []byte, all []*Changes, store int) error {
	var m merge
	for i, c := range all {
		if sc := &c.stores[store]; len(sc.list) > 0 {
			m = append(m, mergeCursor{sc, 0, i})
		}
	}
	heap.Init(&m)
	var last []byte
	for n := 0; len(m) > 0; n++ {
		top := &m[0]
		ch := top.from.list[top.next]
		if key := top.from.key(ch); n == 0 || !bytes.Equal(key, last) {
			if err := writeChange(batch, prefix, key, top.from.value(ch)); err != nil {
				return err
			}
			last = key
		}
		if top.next++; top.next == len(top.from.list) {
			heap.Pop(&m)
		} else {
			heap.Fix(&m, 0)
		}
	}
	return nil
}

// merge is a heap of sorted changes: the least key is on top, of equal ones the newest.
type merge []mergeCursor

type mergeCursor struct {
	from *storeChanges
	next int
	age  int // larger: newer
}

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m merge) Less(i, j int) bool {
	a, b := &m[i], &m[j]
	if n := bytes.Compare(a.from.key(a.from.list[a.next]), b.from.key(b.from.list[b.next])); n != 0 {
		return n < 0
	}
	return a.age > b.age
}
func (m *merge) Push(x any) { *m = append(*m, x.(mergeCursor)) }
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
