package state

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// leastGap is a gap that reading may have at any time: a reader tells every 30 s that it is still at the end.
const leastGap = 10 * aliveEvery

// ApplyChangelog makes changelog records part of a store: those from its position up to next, in order
// of offset; there may be none. end is the changelog's end as last heard of: at next == end the store is
// known to be up to date. The task must not have writes outstanding. As with Apply it gathers for a while before it gets to
// Pebble. It returns ErrStale if a store that was up to date was not for too long: the process may have been suspended.
func (d *DB) ApplyChangelog(store int, recs []*kgo.Record, next, end int64) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.closing.RLock()
	defer d.closing.RUnlock()
	if err := d.usable(); err != nil {
		return err
	}
	s := d.stores[store]
	d.mu.Lock()
	checkpoints := slices.Clone(d.mu.checkpoints)
	own := len(d.mu.outstanding) > d.mu.pending
	d.mu.Unlock()
	c := &checkpoints[store]
	if own || len(s.rows.dirty) > 0 {
		return fmt.Errorf("state of task %s, store %s: changelog applied over writes of its own", d.task, d.specs[store].Name)
	}
	if next < c.position {
		return fmt.Errorf("state of task %s, store %s: position would go back from %d to %d", d.task, d.specs[store].Name, c.position, next)
	}
	now := d.engine.cfg.Now()
	if age := now.Round(0).Sub(c.asOf.Round(0)); s.tailed && age > leastGap && d.specs[store].outlasts(age) {
		return fmt.Errorf("state of task %s, store %s: %w: last at %s", d.task, d.specs[store].Name, ErrStale, c.asOf.UTC().Format(time.RFC3339))
	}
	s.tailed = s.tailed || next >= end
	if next >= end || c.position == 0 {
		c.asOf = now
	}
	if len(recs) == 0 && next == c.position {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.mu.checkpoints = checkpoints
		return nil
	}
	latest, err := latestByKey(recs)
	if err != nil {
		return fmt.Errorf("state of task %s, store %s: %w", d.task, d.specs[store].Name, err)
	}
	c.position = next
	d.frozen++
	changes := &Changes{number: d.frozen, stores: make([]storeChanges, len(d.stores))}
	changes.stores[store] = latest
	if len(latest.list) > 0 && s.rows.live > 0 {
		s.rows.clear()
	}
	if s.keys != nil {
		for key, value := range latest.each {
			if value != nil && s.keys != nil {
				s.remember(key)
			}
		}
	}
	limit := d.engine.replayLimit()
	if next >= end {
		limit = caughtUpBytes
	}
	d.mu.Lock()
	d.mu.outstanding = append(d.mu.outstanding, changes)
	d.gathered(changes, checkpoints, now)
	d.replayed.Store(true)
	due := d.mu.pendingBytes >= limit
	d.mu.Unlock()
	if !due {
		return nil
	}
	return d.writePending()
}

// latestByKey returns the last change of each key in order of the key.
func latestByKey(recs []*kgo.Record) (storeChanges, error) {
	size := 0
	for _, r := range recs {
		if r.Key == nil {
			return storeChanges{}, fmt.Errorf("record %d of changelog %s/%d has no key: it is not a changelog of this application", r.Offset, r.Topic, r.Partition)
		}
		size += len(r.Key) + len(r.Value)
	}
	c := storeChanges{data: make([]byte, 0, size), list: make([]change, 0, len(recs))}
	for _, r := range recs {
		ch := change{at: len(c.data), keyLen: len(r.Key), valueLen: tombstone}
		c.data = append(c.data, r.Key...)
		if r.Value != nil {
			ch.valueLen = len(r.Value)
			c.data = append(c.data, r.Value...)
		}
		if len(c.data) == ch.at {
			c.data = append(c.data, 0) // places tell which one was first
		}
		c.list = append(c.list, ch)
	}
	slices.SortFunc(c.list, func(a, b change) int {
		if n := bytes.Compare(c.key(a), c.key(b)); n != 0 {
			return n
		}
		return b.at - a.at // the last one first
	})
	c.list = slices.CompactFunc(c.list, func(a, b change) bool { return bytes.Equal(c.key(a), c.key(b)) })
	return c, nil
}
