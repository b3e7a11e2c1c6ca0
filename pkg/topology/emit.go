package topology

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// emitter sends on what an aggregate has in its store, at a commit: for each key that has changed, the last value.
type emitter struct {
	*folding
	c      *chain
	step   *aggregateStep
	next   operator
	source kgo.Record // stands for the record that a message comes from
	// latest is the largest timestamp of the messages that deleted a key since the last commit: the store
	// keeps none for these.
	latest int64
	// committed is, of an aggregate in windows, stream time at the last commit.
	committed int64
}

const noDeletion = math.MinInt64

func newEmitter(c *chain, s *aggregateStep, next operator) *emitter {
	e := &emitter{folding: newFolding(c, s), c: c, step: s, next: next, latest: noDeletion}
	c.p.late[s.store.Name] = e
	return e
}

func (e *emitter) deleted(ts int64) { e.latest = max(e.latest, ts) }

// EmitsAtCommit reports whether there are aggregates whose results wait for EmitChanges.
func (p *Processor) EmitsAtCommit() bool { return len(p.late) > 0 }

// EmitChanges sends on the results of the aggregate with this store, if it has emit: commit. Changes are those of the store
// since the last commit: the last value of each key, nil if it was deleted. They must stay as they are, outputs may share them.
//
// What it sends on may change stores that come later in Subtopology.Stores. So a commit takes the stores in that order: it
// cuts one off, calls EmitChanges, and goes on to the next one. An error leaves the processor unusable.
func (p *Processor) EmitChanges(store string, changes iter.Seq2[[]byte, []byte]) error {
	e := p.late[store]
	if e == nil {
		return nil
	}
	e.c.late, p.current = e, e.c
	defer func() { e.c.late = nil }()
	for key, value := range changes {
		if err := e.emit(key, value); err != nil {
			return err
		}
		p.settle()
	}
	e.latest = noDeletion
	if e.step.store.Window == nil {
		return nil
	}
	clock, err := e.clock()
	e.committed = clock.Time
	return err
}

func (e *emitter) emit(key, stored []byte) error {
	c, spec := e.c, &e.step.store
	m, ts, value := &c.m, e.latest, []byte(nil)
	if spec.Window != nil {
		row := key
		var ok bool
		if key, m.window, ok = spec.Window.ParseRow(row); !ok || !window.Result(row) {
			return nil
		}
		if ts = m.window.End; stored == nil && e.over(m.window) {
			return nil
		}
	}
	switch {
	case len(stored) >= stampLen:
		ts, value = int64(binary.BigEndian.Uint64(stored)), stored[stampLen:]
	case stored != nil:
		return spec.corrupt(stored)
	case spec.Window == nil && e.latest == noDeletion:
		return nil // a record that was taken back had brought the key
	}
	e.source = kgo.Record{Key: key, Value: value, Timestamp: time.UnixMilli(ts)}
	m.source, m.ts = &e.source, ts
	var err error
	if m.key, err = decodeDatum(spec.Key, key, false); err != nil {
		return e.explain(err)
	}
	if m.value, err = decodeDatum(spec.Value, value, false); err != nil {
		return spec.corrupt(stored)
	}
	before := c.p.mark()
	c.bad = false
	if m.value, err = e.of(m.value); err == nil {
		err = e.next.process(m)
	}
	if err != nil {
		return c.failed(before, err)
	}
	return nil
}

func (e *emitter) explain(err error) error {
	return fmt.Errorf("stream %s: sending on the results of store %s: %w", e.c.seg.stream, e.step.store.Name, err)
}

// over tells whether a window's row was deleted because its time is over, and not because it has no value any more: the
// former is done to those whose time was over at the last commit.
func (e *emitter) over(b window.Bounds) bool {
	return e.committed != unknownTime && b.End <= e.step.store.Window.Expiry(e.committed)
}

func (e *emitter) clock() (window.Clock, error) {
	row, ok, err := e.c.p.stores[e.step.store.Name].Get(window.ClockKey)
	if err != nil {
		return window.Clock{}, fmt.Errorf("store %s: %w", e.step.store.Name, err)
	}
	if clock, known := window.ParseClock(row); ok && known {
		return clock, nil
	}
	return window.NewClock(), nil
}
