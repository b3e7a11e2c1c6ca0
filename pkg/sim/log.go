package sim

import (
	"slices"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// task is one task as Kafka holds it: its input, its committed offsets and its changelog.
type task struct {
	index    int
	id       assign.TaskID
	stateful bool

	input     []int64 // per partition: the log's end
	committed []int64 // per partition: the committed offset, or none
	metadata  string  // of the committed offsets; all partitions are committed in one request
	commitNo  int     // of the request that brought them
	pending   []*txn  // bring offsets of this task and have not ended
	changelog []entry
	open      []*txn // have records in the changelog, where they have not ended
	durable   []cell // per partition: what the whole changelog says, of transactions those that are decided

	// Exactly once, for the checker: the offsets of all that is decided, visible or not, and the place of the
	// last changelog record in it.
	decided   []int64
	decidedNo int
	lastWrite int

	// mayDouble: work was flushed and then dropped before its commit was acknowledged. At least once
	// then may count inputs twice; otherwise it may not.
	mayDouble bool
}

// cell is the state kept for one input partition: the inputs below `below` are in it, counted `applied`
// times in all.
type cell struct{ below, applied int64 }

// entry is a changelog record: the new value of one partition's cell. A stateless task's entries stand for
// its output.
type entry struct {
	part int // or marker
	cell cell
	txn  *txn // nil: none
}

// marker is the partition of an entry that ends a transaction.
const marker = -1

// counts says whether the record is part of the state once it can be read.
func (e entry) counts() bool { return e.part != marker && (e.txn == nil || e.txn.state == toCommit) }

// none is the committed offset of a partition that has none.
const none = -1

func newTask(index int, id assign.TaskID, stateful bool, parts int) *task {
	return &task{
		index: index, id: id, stateful: stateful, lastWrite: none,
		input: make([]int64, parts), durable: make([]cell, parts),
		committed: slices.Repeat([]int64{none}, parts), decided: slices.Repeat([]int64{none}, parts),
	}
}

func (t *task) append(e entry) {
	t.changelog = append(t.changelog, e)
	t.durable[e.part] = e.cell
}

func (t *task) end() int { return len(t.changelog) }

// readable is how far the changelog can be read: to the first record of a transaction that has not ended.
func (t *task) readable() int {
	end := t.end()
	for _, x := range t.open {
		end = min(end, x.begins[t.index])
	}
	return end
}

// store is a copy of a task's state together with its position in the changelog.
type store struct {
	pos   int
	cells []cell
}

func newStore(t *task) *store { return &store{cells: make([]cell, len(t.input))} }

func (s *store) clone() *store { return &store{pos: s.pos, cells: slices.Clone(s.cells)} }

// replay applies up to n changelog records, not beyond end. Dirty, it also takes those that do not count.
func (s *store) replay(t *task, n, end int, dirty bool) {
	for ; n > 0 && s.pos < end; n-- {
		if e := t.changelog[s.pos]; e.counts() || dirty && e.part != marker {
			s.cells[e.part] = e.cell
		}
		s.pos++
	}
}
