package state

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ApplyChangelog makes changelog records part of a store: those from its position up to next, in order
// of offset; there may be none. end is the changelog's end as last heard of: at next == end the store is
// known to be up to date. The task must not have writes outstanding.
func (d *DB) ApplyChangelog(store int, recs []*kgo.Record, next, end int64) error {
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
	s := d.stores[store]
	d.mu.Lock()
	checkpoints := slices.Clone(d.mu.checkpoints)
	outstanding := len(d.mu.outstanding)
	d.mu.Unlock()
	c := &checkpoints[store]
	if outstanding > 0 || len(s.rows.dirty) > 0 {
		return fmt.Errorf("state of task %s, store %s: changelog applied over writes of its own", d.task, d.specs[store].Name)
	}
	if next < c.position {
		return fmt.Errorf("state of task %s, store %s: position would go back from %d to %d", d.task, d.specs[store].Name, c.position, next)
	}
	if now := d.engine.cfg.Now(); next >= end || c.position == 0 {
		c.asOf = now
	}
	if len(recs) == 0 && next == c.position {
		d.mu.Lock()
		d.mu.checkpoints = checkpoints
		d.mu.Unlock()
		return nil
	}
	c.position = next

	latest, err := latestByKey(recs)
	if err != nil {
		return fmt.Errorf("state of task %s, store %s: %w", d.task, d.specs[store].Name, err)
	}
	size := (&Changes{stores: make([]storeChanges, len(d.stores))}).batchSize()
	for _, r := range latest {
		size += len(r.Key) + len(r.Value) + prefixLen + 10
	}
	batch := d.pebble.NewBatchWithSize(size)
	for _, r := range latest {
		if err := writeChange(batch, s.prefix, r.Key, r.Value); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	if len(latest) > 0 && s.rows.live > 0 {
		s.rows.clear()
	}
	for _, r := range latest {
		if s.keys != nil && r.Value != nil {
			s.remember(r.Key)
		}
	}
	return d.commit(batch, checkpoints)
}

// latestByKey returns the last record of each key in order of the key: sorted batches are what Pebble
// takes fastest.
func latestByKey(recs []*kgo.Record) ([]*kgo.Record, error) {
	for _, r := range recs {
		if r.Key == nil {
			return nil, fmt.Errorf("record %d of changelog %s/%d has no key: it is not a changelog of this application", r.Offset, r.Topic, r.Partition)
		}
	}
	sorted := slices.Clone(recs)
	slices.SortFunc(sorted, func(a, b *kgo.Record) int {
		if n := bytes.Compare(a.Key, b.Key); n != 0 {
			return n
		}
		return int(b.Offset - a.Offset) // the last one first
	})
	return slices.CompactFunc(sorted, func(a, b *kgo.Record) bool { return bytes.Equal(a.Key, b.Key) }), nil
}
