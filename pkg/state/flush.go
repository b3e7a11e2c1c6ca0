package state

import (
	"fmt"
	"slices"
	"time"
)

// refreshAfter is the age at which the written time of an idle store's checkpoint is brought up to date,
// so that its state does not look too old after a crash.
const refreshAfter = time.Hour

// MarkCurrent notes that the stores hold all of their changelogs at this moment. The active owner of an
// idle task calls it now and then; Apply does the same.
func (d *DB) MarkCurrent() {
	now := d.engine.cfg.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.mu.checkpoints {
		d.mu.checkpoints[i].asOf = now
	}
}

// Flush writes everything applied to disk, so that a crash does not lose it.
func (d *DB) Flush() error {
	if err := d.refresh(refreshAfter); err != nil {
		return err
	}
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	return d.flush()
}

// refresh writes what is pending, and checkpoints whose time has moved on by more than age since they were written.
func (d *DB) refresh(age time.Duration) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	if err := d.writePending(); err != nil {
		return err
	}
	d.mu.Lock()
	next := slices.Clone(d.mu.checkpoints)
	old := false
	for i, c := range next {
		old = old || c.asOf.Sub(d.mu.written[i].asOf) > age
	}
	d.mu.Unlock()
	if !old {
		return nil
	}
	return d.commit(d.pebble.NewBatch(), next)
}

// flush waits until all that was applied before is on disk. The caller holds closing.
func (d *DB) flush() error {
	d.mu.Lock()
	size := d.mu.unflushed
	d.mu.unflushed = 0
	d.mu.Unlock()
	if size == 0 {
		return nil
	}
	d.engine.flushed(size)
	done, err := d.pebble.AsyncFlush()
	if err != nil {
		return fmt.Errorf("state of task %s: flush: %w", d.task, err)
	}
	select {
	case <-done:
		return nil
	case <-d.failed: // Pebble goes on trying, perhaps for ever
		return d.Err()
	}
}

// unflushed returns the bytes applied since the last flush.
func (d *DB) unflushed() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.unflushed
}
