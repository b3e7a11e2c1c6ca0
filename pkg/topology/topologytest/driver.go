package topologytest

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Config says what to run.
type Config struct {
	Topology     *topology.Topology
	ManualCommit bool // commit only when Commit is called, not after each record
}

// Driver runs one task of every subtopology. It is used by one goroutine at a time. Close it.
type Driver struct {
	cfg     Config
	engine  *state.Engine
	tasks   []*task
	globals map[string]*topology.GlobalTable // by topic
	readers map[string][]reader              // by topic
	offsets map[string]int64                 // by topic: the next one
	queue   []*kgo.Record                    // written, and not read yet by whom it concerns
	written map[string][]written
	formats formats
	input   int   // number of the current one, from 0
	err     error // not nil: a store has failed
	now     time.Time
}

// reader is a task that reads a topic, as the source with that index.
type reader struct {
	task   *task
	source int
}

// written is a record that a task wrote.
type written struct {
	rec   *kgo.Record
	input int // which caused it
}

// New makes a driver in which nothing has happened yet.
func New(cfg Config) (*Driver, error) {
	engine, err := state.NewEngine(state.Config{Dir: "/state", FS: vfs.NewMem(), BallastBytes: -1, BlockCacheBytes: 1 << 20, RowCacheBytes: 16 << 20})
	if err != nil {
		return nil, err
	}
	d := &Driver{
		cfg: cfg, engine: engine, formats: formatsOf(cfg.Topology), input: -1,
		readers: make(map[string][]reader), offsets: make(map[string]int64), written: make(map[string][]written),
		globals: make(map[string]*topology.GlobalTable), now: ms(0),
	}
	for _, g := range cfg.Topology.Globals {
		d.globals[g.Topic] = topology.NewGlobalTable(g)
	}
	for _, sub := range cfg.Topology.Subtopologies {
		t, err := d.open(sub)
		if err != nil {
			return nil, errors.Join(err, engine.Close())
		}
		d.tasks = append(d.tasks, t)
		if _, _, err := t.proc.Tick(d.now); err != nil {
			return nil, errors.Join(err, engine.Close())
		}
		for i, source := range sub.Sources {
			d.readers[source.Topic] = append(d.readers[source.Topic], reader{task: t, source: i})
		}
	}
	return d, nil
}

// Close gives up all that the driver holds.
func (d *Driver) Close() error { return d.engine.Close() }

// Pipe processes a record, and all that follows from it, and commits. A record that a stream cannot process under
// on_error: fail gives a *topology.RecordError; it is passed over, and the driver can go on. So can it after the error of a record of
// a global table that is not in its format.
func (d *Driver) Pipe(r Record) error {
	rec, err := d.formats.input(r)
	if err != nil {
		return err
	}
	return d.PipeRaw(rec)
}

// PipeRaw is Pipe for a record whose bytes are given. They must stay as they are.
func (d *Driver) PipeRaw(rec *kgo.Record) error {
	if len(d.readers[rec.Topic]) == 0 && d.globals[rec.Topic] == nil {
		return fmt.Errorf("no stream reads topic %q", rec.Topic)
	}
	d.input++
	d.queue = append(d.queue, rec)
	return d.settle(d.drain())
}

// Advance moves the wall clock, which begins at the epoch, in one step: a timer that is due calls once, however often it would have
// by now. What follows from that is processed, and committed. Of outputs Record.Input is then the number of the next input.
func (d *Driver) Advance(by time.Duration) error {
	d.now = d.now.Add(by)
	d.input++
	defer func() { d.input-- }()
	var all error
	for _, t := range d.tasks {
		_, _, err := t.proc.Tick(d.now)
		all = errors.Join(all, err, d.drain())
	}
	return d.settle(all)
}

// settle ends a step: by a commit unless these are made by hand.
func (d *Driver) settle(err error) error {
	if d.cfg.ManualCommit {
		return err
	}
	return errors.Join(err, d.Commit())
}

// Commit makes what was done permanent. Aggregates with emit: commit send on their results now, and what follows from
// these is processed and committed too.
func (d *Driver) Commit() error {
	var all error
	for again := true; again; {
		again = false
		for _, t := range d.tasks {
			changed, err := t.commit()
			if err != nil {
				d.err = errors.Join(d.err, err)
				return errors.Join(all, err)
			}
			again = again || changed
			all = errors.Join(all, d.drain())
		}
	}
	return all
}

// WrittenRaw is Written with the bytes as they are.
func (d *Driver) WrittenRaw(topic string) []*kgo.Record {
	out := make([]*kgo.Record, len(d.written[topic]))
	for i, w := range d.written[topic] {
		out[i] = w.rec
	}
	return out
}

// Emit takes a record that a task writes: it is part of topology.Output.
func (d *Driver) Emit(r *kgo.Record) {
	d.written[r.Topic] = append(d.written[r.Topic], written{rec: r, input: d.input})
	if len(d.readers[r.Topic]) > 0 || d.globals[r.Topic] != nil {
		d.queue = append(d.queue, r)
	}
}

// drain processes what was written and is read here, in the order in which it was written.
func (d *Driver) drain() error {
	var all error
	for len(d.queue) > 0 && d.err == nil {
		rec := *d.queue[0]
		d.queue = d.queue[1:]
		rec.Partition, rec.Offset = 0, d.offsets[rec.Topic]
		d.offsets[rec.Topic]++
		if g := d.globals[rec.Topic]; g != nil {
			if err := g.Put(rec.Key, rec.Value); err != nil {
				all = errors.Join(all, fmt.Errorf("global table of topic %s: %w", rec.Topic, err))
			}
		}
		for _, r := range d.readers[rec.Topic] {
			err := r.task.proc.Process(r.source, []*kgo.Record{&rec})
			var bad *topology.RecordError
			if err != nil && !errors.As(err, &bad) {
				d.err = errors.Join(d.err, err)
			}
			all = errors.Join(all, err)
		}
	}
	return errors.Join(all, d.broken())
}

// broken says why the driver cannot go on after a store has failed.
func (d *Driver) broken() error {
	if d.err == nil || len(d.queue) == 0 {
		return nil
	}
	return fmt.Errorf("nothing more is processed: %w", d.err)
}

// ms is a time as timestamps of records have it.
func ms(n int64) time.Time { return time.UnixMilli(n) }
