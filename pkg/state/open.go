package state

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// openDB opens the database at dir, which may be new. Errors that setAside tells apart mean that what is
// there cannot be used.
func (e *Engine) openDB(task, dir string, specs []StoreSpec) (*DB, error) {
	d := &DB{engine: e, task: task, dir: dir, specs: specs, failed: make(chan struct{}), log: e.log.With("task", task)}
	d.mu.iterators = make(map[*Iterator]struct{})
	if err := e.checkTables(dir); err != nil {
		return nil, err
	}
	p, err := pebble.Open(dir, e.options(task, d.log, d.fail))
	if err != nil {
		return nil, fmt.Errorf("opening the state of task %s in %s: %w", task, dir, err)
	}
	d.pebble = p
	if err := d.load(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	e.applied(d.mu.unflushed, false)
	for _, s := range d.stores {
		s.rows = newRows(&e.rows, &d.applied)
	}
	if err := d.dropStale(); err != nil {
		d.closeRows()
		return nil, errors.Join(err, p.Close())
	}
	return d, nil
}

// checkTables refuses a directory with tables that no database there knows of: Pebble would start a new
// one and remove them.
func (e *Engine) checkTables(dir string) error {
	names, err := e.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") }) {
		return err
	}
	desc, err := pebble.Peek(dir, e.fs)
	if err == nil && !desc.Exists {
		return &unusableError{"it has tables but no manifest that names them"}
	}
	return err
}

// load reads the checkpoints and numbers stores that are new.
func (d *DB) load() error {
	known, err := readCheckpoints(d.pebble, d.task)
	if err != nil {
		return err
	}
	definitions, err := readDefinitions(d.pebble)
	if err != nil {
		return err
	}
	if known == nil {
		if err := d.pebble.Set(formatKey, []byte(formatTag+d.task), pebble.NoSync); err != nil {
			return err
		}
	}
	highest := uint16(0)
	for _, c := range known {
		highest = max(highest, c.number)
	}
	d.mu.checkpoints = make([]checkpoint, len(d.specs))
	for i, spec := range d.specs {
		c, ok := known[spec.Name]
		if !ok {
			highest++
			c = checkpoint{number: highest, topicID: spec.TopicID, asOf: d.engine.cfg.Now()}
		}
		if err := d.define(spec, c, definitions[spec.Name]); err != nil {
			return err
		}
		d.mu.checkpoints[i] = c
		d.stores = append(d.stores, &Store{db: d, index: i, prefix: storePrefix(c.number)})
	}
	d.mu.written = slices.Clone(d.mu.checkpoints)
	return nil
}

// define records the definition of a store, unless rows of another one are there that are good.
func (d *DB) define(spec StoreSpec, c checkpoint, was string) error {
	if spec.Definition == "" || spec.Definition == was {
		return nil
	}
	if was != "" && c.position > 0 && c.stale(spec, d.engine.cfg.Now()) == "" {
		return fmt.Errorf("%w: store %s of task %s in %s was written as %q and is to be read as %q: give the store another name, or start it anew by streamworker reset --store %s",
			ErrRedefined, spec.Name, d.task, d.dir, was, spec.Definition, spec.Name)
	}
	d.mu.unflushed += int64(len(spec.Definition)) // the DB is not open yet: nobody else reads it
	return d.pebble.Set(definitionKey(spec.Name), []byte(spec.Definition), pebble.NoSync)
}

// dropStale empties the stores whose checkpoint is not good any more.
func (d *DB) dropStale() error {
	for i, c := range d.mu.checkpoints {
		if reason := c.stale(d.specs[i], d.engine.cfg.Now()); reason != "" {
			if err := d.drop(reason, []int{i}); err != nil {
				return err
			}
		} else if c.position == 0 {
			d.mu.checkpoints[i].topicID = d.specs[i].TopicID
			d.stores[i].keys = newFilter(&d.engine.rows) // data and positions are never apart
		}
	}
	return nil
}

// readCheckpoints returns all checkpoints by store, nil if the database is new.
func readCheckpoints(p *pebble.DB, task string) (map[string]checkpoint, error) {
	tag, closer, err := p.Get(formatKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, checkEmpty(p, task)
	case err != nil:
		return nil, err
	}
	got := string(tag)
	if err := closer.Close(); err != nil {
		return nil, err
	}
	if got != formatTag+task {
		return nil, &unusableError{fmt.Sprintf("it was written by another version or for another task (its mark is %q)", got)}
	}
	known := make(map[string]checkpoint)
	return known, eachNamed(p, checkpointKeyPrefix, checkpointKeyEnd, func(name string, value []byte) error {
		c, err := decodeCheckpoint(value)
		if err != nil {
			return &unusableError{fmt.Sprintf("store %s: %v", name, err)}
		}
		known[name] = c
		return nil
	})
}

// readDefinitions returns the definitions of the stores that have one.
func readDefinitions(p *pebble.DB) (map[string]string, error) {
	known := make(map[string]string)
	return known, eachNamed(p, definitionKeyPrefix, definitionKeyEnd, func(name string, value []byte) error {
		known[name] = string(value)
		return nil
	})
}

// eachNamed calls f for the entries from prefix to end, which are named after stores.
func eachNamed(p *pebble.DB, prefix, end []byte, f func(name string, value []byte) error) error {
	it, err := p.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: end})
	if err != nil {
		return err
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		err = f(string(it.Key()[len(prefix):]), it.Value())
	}
	return errors.Join(err, it.Close())
}

// checkEmpty refuses a database without our mark that has anything in it.
func checkEmpty(p *pebble.DB, task string) error {
	it, err := p.NewIter(nil)
	if err != nil {
		return err
	}
	if it.First() {
		return errors.Join(&unusableError{"it is a database of something else"}, it.Close())
	}
	return it.Close()
}

// Close flushes what was applied and closes the database; writes that were not applied are dropped.
// State that was found damaged is set aside. Close waits for calls under way; iterators end with ErrClosed.
func (d *DB) Close() error {
	if d.closed.Load() {
		return ErrClosed
	}
	var err error
	if d.Err() == nil {
		err = d.refresh(0)
	}
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed.Load() {
		return ErrClosed
	}
	if d.Err() == nil {
		err = errors.Join(err, d.writePending(), d.flush())
	}
	d.closed.Store(true)
	d.mu.Lock()
	iterators := slices.Collect(maps.Keys(d.mu.iterators))
	unflushed := d.mu.unflushed
	d.mu.Unlock()
	for _, it := range iterators {
		err = errors.Join(err, it.closeLocked())
	}
	for _, s := range d.stores {
		err = errors.Join(err, s.endScans())
	}
	d.closeRows()
	err = errors.Join(err, d.pebble.Close())
	d.engine.flushed(unflushed)
	d.engine.closed(d)
	if err != nil {
		return fmt.Errorf("closing the state of task %s: %w", d.task, err)
	}
	return nil
}

func (d *DB) closeRows() {
	for _, s := range d.stores {
		s.rows.close()
		if s.keys != nil {
			s.keys.release()
		}
	}
}
