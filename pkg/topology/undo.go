package topology

// journal lets a record that turns out bad leave no trace. It holds the outputs of the current source record until
// the record is done, and, where a step may fail after a store was written, what the stores had before.
type journal struct {
	entries []undoEntry
	old     []byte // the keys and old values, one after the other
}

type undoEntry struct {
	store         Store
	key, from, to int // the key begins at key in journal.old, the old value goes from from to to
	existed       bool
}

// mark is a place to roll back to.
type mark struct{ outputs, entries int }

func (p *Processor) mark() mark { return mark{len(p.pending), len(p.journal.entries)} }

// remember notes what a store has for a key that is about to be written. It copies both.
func (j *journal) remember(s Store, key, old []byte, existed bool) {
	at := len(j.old)
	j.old = append(append(j.old, key...), old...)
	j.entries = append(j.entries, undoEntry{store: s, key: at, from: at + len(key), to: len(j.old), existed: existed})
}

// rollback takes back what the current record has done since m.
func (p *Processor) rollback(m mark) {
	j := &p.journal
	for i := len(j.entries) - 1; i >= m.entries; i-- {
		if e := j.entries[i]; e.existed {
			e.store.Put(j.old[e.key:e.from], j.old[e.from:e.to])
		} else {
			e.store.Delete(j.old[e.key:e.from])
		}
	}
	if len(j.entries) > m.entries {
		j.old = j.old[:j.entries[m.entries].key]
		j.entries = j.entries[:m.entries]
		p.rollbacks++
	}
	p.Out -= uint64(len(p.pending) - m.outputs)
	p.pending = p.pending[:m.outputs]
}

// settle makes what the current record has done final.
func (p *Processor) settle() {
	for i, r := range p.pending {
		p.out.Emit(r)
		p.pending[i] = nil
	}
	p.pending = p.pending[:0]
	p.journal.entries, p.journal.old = p.journal.entries[:0], p.journal.old[:0]
	p.records++
}

// undoes reports whether writes to the segment's stores may have to be taken back: if a step behind an aggregate can fail,
// or if, under on_error: fail or where records may have to wait, something else can fail for a record that has already reached one. What follows an aggregate that
// emits at commits begins anew there, and cannot fail under on_error: fail.
func (s *segment) undoes(shared, waits bool) bool {
	// What follows may fail as well, and several may lead to one store.
	if !s.reads() || len(s.end.taps) > 0 || len(s.joins) > 0 || s.table {
		return true
	}
	aggregated, listed := false, false
	for _, one := range s.steps {
		switch one := one.(type) {
		case *dedupeStep, *ttlStep:
			return true // several rows are written for a record
		case *customStep:
			return true // it may fail after it has written
		case *aggregateStep:
			if one.store.Window != nil {
				return true // several rows are written for a record
			}
			if aggregated || (s.source.OnError == Stop || waits) && (shared || listed) {
				return true
			}
			if one.atCommit && s.source.OnError == Stop {
				return false
			}
			aggregated = !one.atCommit
		case *flatMapStep:
			listed = true
			if aggregated {
				return true
			}
		case *sinkStep:
			if aggregated && (one.mayFail() || one.mayGrow()) {
				return true
			}
		default:
			if aggregated {
				return true
			}
		}
	}
	return false
}

// mayFail reports whether a datum may turn out not to be writable. What an aggregate has read or written is encoded
// already, or made of numbers that always are; but NaN and infinity have no JSON form.
func mayFail(from, to Format) bool {
	return from != to && (fitOf(from, to) == mayFit || from == Float && to == JSON)
}
