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
	changelog []entry
	durable   []cell // per partition: what the whole changelog says

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
	part int
	cell cell
}

// none is the committed offset of a partition that has none.
const none = -1

func newTask(index int, id assign.TaskID, stateful bool, parts int) *task {
	return &task{
		index: index, id: id, stateful: stateful,
		input: make([]int64, parts), committed: slices.Repeat([]int64{none}, parts), durable: make([]cell, parts),
	}
}

func (t *task) append(e entry) {
	t.changelog = append(t.changelog, e)
	t.durable[e.part] = e.cell
}

func (t *task) end() int { return len(t.changelog) }

// store is a copy of a task's state together with its position in the changelog.
type store struct {
	pos   int
	cells []cell
}

func newStore(t *task) *store { return &store{cells: make([]cell, len(t.input))} }

func (s *store) clone() *store { return &store{pos: s.pos, cells: slices.Clone(s.cells)} }

// replay applies up to n changelog records, not beyond end.
func (s *store) replay(t *task, n, end int) {
	for ; n > 0 && s.pos < end; n-- {
		e := t.changelog[s.pos]
		s.cells[e.part] = e.cell
		s.pos++
	}
}
