package sim

import "slices"

// producer is what the transaction coordinator knows of one transactional id, which is that of an instance.
type producer struct {
	id    string
	epoch int
	txn   *txn // that has not ended; nil: there is none
}

// txnState is a state of a transaction at its coordinator.
type txnState uint8

const (
	ongoing  txnState = iota
	toCommit          // decided, and answered; markers are being written
	toAbort
)

// txn is one transaction.
type txn struct {
	producer *producer
	proc     *process
	state    txnState
	writes   []write
	begins   []int // per task: its first changelog record that has no marker after it, or none
	offsets  []txnOffsets
}

// write is one record in a transaction, of a changelog or, of a stateless task, an output.
type write struct {
	task   *task
	part   int
	cell   cell
	inputs int64 // stateless: how many inputs the output is of
	at     int   // place in the changelog
}

// txnOffsets are the offsets of one task in a transaction.
type txnOffsets struct {
	part commitPart
	no   int
}

func (w *world) producer(id string) *producer {
	for _, pr := range w.producers {
		if pr.id == id {
			return pr
		}
	}
	pr := &producer{id: id}
	w.producers = append(w.producers, pr)
	return pr
}

// begun is the producer's transaction. The brokers begin one with the first request that belongs to it.
func (w *world) begun(pr *producer, p *process) *txn {
	if pr.txn == nil {
		pr.txn = &txn{producer: pr, proc: p, begins: slices.Repeat([]int{none}, len(w.tasks))}
	}
	return pr.txn
}

// write adds a record to the transaction.
func (x *txn) write(wr write) {
	t := wr.task
	wr.at = t.end()
	x.writes = append(x.writes, wr)
	if !t.stateful {
		return
	}
	if x.begins[t.index] == none {
		x.begins[t.index] = wr.at
		t.open = append(t.open, x)
	}
	t.changelog = append(t.changelog, entry{part: wr.part, cell: wr.cell, txn: x})
}

// addOffsets adds a task's offsets. From now on they are unstable.
func (w *world) addOffsets(x *txn, part commitPart) {
	w.commitNo++
	x.offsets = append(x.offsets, txnOffsets{part, w.commitNo})
	if !slices.Contains(part.task.pending, x) {
		part.task.pending = append(part.task.pending, x)
	}
}

// end decides a transaction. What follows from it is seen later, when its markers are written.
func (w *world) end(x *txn, commit bool) {
	if !commit {
		x.state = toAbort
		return
	}
	x.state = toCommit
	w.result.Transactions++
	for _, wr := range x.writes {
		t := wr.task
		if !t.stateful { // outputs add up
			d := &t.durable[wr.part]
			d.below, d.applied = max(d.below, wr.cell.below), d.applied+wr.inputs
			continue
		}
		if wr.at <= t.lastWrite {
			w.fail("one writer", "a transaction of %s is committed with a record of %s at %d; another one's, committed before, is at %d",
				x.proc.name, t.id, wr.at, t.lastWrite)
		}
		t.lastWrite, t.durable[wr.part] = wr.at, wr.cell
	}
	for _, o := range x.offsets {
		w.decideOffsets(o.part, o.no, x.proc)
	}
	for _, wr := range x.writes {
		w.checkExact(wr.task)
	}
	for _, o := range x.offsets {
		w.checkExact(o.part.task)
	}
}

// fence takes a transactional id over: what is open is aborted, and requests of its former producer are
// refused.
func (w *world) fence(pr *producer) {
	pr.epoch++
	if pr.txn != nil && pr.txn.state == ongoing {
		w.end(pr.txn, false)
	}
}

// mark writes one of the markers of a transaction that is decided.
func (w *world) mark(x *txn) {
	var left []int
	for i, at := range x.begins {
		if at != none {
			left = append(left, i)
		}
	}
	if len(x.offsets) > 0 {
		left = append(left, none)
	}
	if len(left) > 0 {
		w.markIn(x, left[w.rng.IntN(len(left))])
	}
	if len(left) <= 1 {
		x.producer.txn = nil
	}
}

// markIn writes the marker in a task's changelog or, of none, that beside the offsets.
func (w *world) markIn(x *txn, i int) {
	is := func(o *txn) bool { return o == x }
	if i != none {
		t := w.tasks[i]
		t.changelog = append(t.changelog, entry{part: marker})
		t.open = slices.DeleteFunc(t.open, is)
		x.begins[i] = none
		return
	}
	for _, o := range x.offsets {
		o.part.task.pending = slices.DeleteFunc(o.part.task.pending, is)
		if x.state == toCommit {
			w.commitOffsets(o.part, o.no, x.proc)
		}
	}
	x.offsets = nil
}

// markSome writes a marker of some transaction. It reports whether there was one to write.
func (w *world) markSome() bool {
	for _, i := range w.rng.Perm(len(w.producers)) {
		if x := w.producers[i].txn; x != nil && x.state != ongoing {
			w.mark(x)
			return true
		}
	}
	return false
}

// timeOut ends a transaction that has taken too long, if there is one that may.
func (w *world) timeOut(may func(*txn) bool) bool {
	for _, i := range w.rng.Perm(len(w.producers)) {
		pr := w.producers[i]
		if x := pr.txn; x != nil && x.state == ongoing && may(x) {
			w.fence(pr)
			w.note("the transaction of %s (%s) times out", x.proc.name, pr.id)
			return true
		}
	}
	return false
}

// commitOffsets makes a task's offsets the committed ones, unless younger ones are there: a transaction's count
// from when they were added to it.
func (w *world) commitOffsets(part commitPart, no int, by *process) {
	t := part.task
	if no < t.commitNo {
		return
	}
	for i, o := range part.offsets {
		if o < t.committed[i] {
			w.fail("committed offsets never go back", "task %s partition %d: from %d to %d by %s", t.id, i, t.committed[i], o, by.name)
		}
		t.committed[i] = o
	}
	t.metadata, t.commitNo = part.metadata, no
}

// decideOffsets notes a task's offsets for the checker, as commitOffsets will.
func (w *world) decideOffsets(part commitPart, no int, by *process) {
	t := part.task
	if no < t.decidedNo {
		return
	}
	for i, o := range part.offsets {
		if o < t.decided[i] {
			w.fail("committed offsets never go back", "task %s partition %d: from %d to %d by %s", t.id, i, t.decided[i], o, by.name)
		}
		t.decided[i] = o
	}
	t.decidedNo = no
}
