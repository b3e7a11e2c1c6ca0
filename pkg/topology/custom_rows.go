package topology

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// CustomRows are a store of a custom step. Changes are a part of what the record does: they are taken back if it turns out bad,
// committed with its offset, and move with the task. After a failure of the store nothing is read or written any more, and the
// record is not processed.
type CustomRows struct {
	rows rows
	o    *customOperator
	buf  []byte
}

// Get returns the value of a key, and its timestamp in ms since the epoch.
func (r *CustomRows) Get(key *Datum) (value Datum, ts int64, ok bool) {
	raw := r.key(key)
	if raw == nil {
		return Datum(nullDatum()), 0, false
	}
	row, ok, err := r.rows.get(raw)
	if err == nil && ok {
		var s stored
		if s, err = r.rows.spec.parse(row, true, &r.o.c.p.slabs); err == nil {
			return Datum(s.value), s.ts, true
		}
	}
	r.failed(err)
	return Datum(nullDatum()), 0, false
}

// Put sets the value of a key, with the timestamp of the record; a null deletes it.
func (r *CustomRows) Put(key, value *Datum) {
	if value.null {
		r.Delete(key)
		return
	}
	raw, v := r.key(key), datum(*value)
	if raw == nil {
		return
	}
	if err := v.encode(r.rows.spec.Value, &r.o.c.p.slabs); err != nil {
		r.failed(fault{fmt.Errorf("store %s: value: %w", r.rows.spec.Name, err)})
		return
	}
	r.buf = append(binary.BigEndian.AppendUint64(r.buf[:0], uint64(r.o.ts)), v.raw...)
	r.failed(r.rows.put(raw, r.buf))
}

// Delete deletes a key.
func (r *CustomRows) Delete(key *Datum) {
	if raw := r.key(key); raw != nil {
		r.failed(r.rows.remove(raw))
	}
}

func (r *CustomRows) key(key *Datum) []byte { return r.o.storeKey(r.rows.spec, key) }

func (r *CustomRows) failed(err error) { r.o.storeFailed(err) }

// storeKey encodes a key of a store; nil: there is nothing to do.
func (o *customOperator) storeKey(spec *StoreSpec, key *Datum) []byte {
	if o.err != nil {
		return nil
	}
	k := datum(*key)
	if k.null {
		o.storeFailed(fault{fmt.Errorf("store %s: the key is null", spec.Name)})
		return nil
	}
	if err := k.encode(spec.Key, &o.c.p.slabs); err != nil {
		o.storeFailed(fault{fmt.Errorf("store %s: key: %w", spec.Name, err)})
		return nil
	}
	return k.raw
}

func (o *customOperator) storeFailed(err error) {
	if o.err == nil {
		o.err = err
	}
}

// scanned is how many rows are read at a time: f may write meanwhile.
const scanned = 256

// Scan calls f for the rows from (inclusive) to (exclusive) in order of their keys' bytes, until it returns false; null means no
// bound. f may write to the store; whether it sees what it has written behind the present key is not said.
func (r *CustomRows) Scan(from, to *Datum, f func(key, value Datum, ts int64) bool) {
	var first, end []byte
	if !from.null {
		first = r.key(from)
	}
	if !to.null {
		end = r.key(to)
	}
	type pair struct{ key, row []byte }
	for r.o.err == nil {
		var found []pair
		err := r.rows.scan(first, end, func(key, row []byte) bool {
			found = append(found, pair{slices.Clone(key), slices.Clone(row)})
			return len(found) < scanned
		})
		r.failed(err)
		for _, p := range found {
			key, err := decodeDatum(r.rows.spec.Key, p.key, false)
			if err != nil {
				r.failed(r.rows.spec.corrupt(p.key))
				return
			}
			s, err := r.rows.spec.parse(p.row, true, &r.o.c.p.slabs)
			r.failed(err)
			if err != nil || !f(Datum(key), Datum(s.value), s.ts) {
				return
			}
		}
		if len(found) < scanned {
			return
		}
		first = append(found[scanned-1].key, 0)
	}
}
