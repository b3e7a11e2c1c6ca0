package topologytest

import (
	"fmt"
	"iter"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology"
)

// task is the one task of a subtopology.
type task struct {
	sub       *topology.Subtopology
	proc      *topology.Processor
	db        *state.DB // nil: it has no stores
	positions []int64   // in the changelogs that there would be
}

func (d *Driver) open(sub *topology.Subtopology) (*task, error) {
	t := &task{sub: sub, positions: make([]int64, len(sub.Stores))}
	stores := make([]topology.Store, len(sub.Stores))
	if len(stores) > 0 {
		specs := make([]state.StoreSpec, len(sub.Stores))
		for i, s := range sub.Stores {
			specs[i] = state.StoreSpec{Name: s.Name, Changelog: s.Changelog}
		}
		var err error
		if t.db, err = d.engine.Open(fmt.Sprintf("%d_0", sub.ID), specs); err != nil {
			return nil, err
		}
		for i, s := range sub.Stores {
			stores[i] = t.db.Store(s.Name)
		}
	}
	var err error
	globals := make([]*topology.GlobalTable, len(sub.Globals))
	for i, g := range sub.Globals {
		globals[i] = d.globals[g.Topic]
	}
	t.proc, err = sub.NewProcessor(stores, d, globals...)
	return t, err
}

// commit cuts off what has changed, lets aggregates send on what waits for that, and writes it to the database. It says
// whether there was anything.
func (t *task) commit() (bool, error) {
	if t.db == nil {
		return false, nil
	}
	changes, err := t.db.FreezeEach(func(store int, changes iter.Seq2[[]byte, []byte]) error {
		return t.proc.EmitChanges(t.sub.Stores[store].Name, changes)
	})
	if err != nil {
		return false, fmt.Errorf("committing task %d_0: %w", t.sub.ID, err)
	}
	if changes == nil {
		return false, nil
	}
	for i := range t.positions {
		t.positions[i] += int64(changes.Len())
	}
	return true, t.db.Apply(changes, t.positions)
}
