package streams

import (
	"time"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Group is a stream whose records are to be aggregated by key, of all time or in windows.
type Group[K, V any] struct {
	n *node
	reader[K, V]
	window fields        // nil: of all time
	ttl    time.Duration // 0: rows stay
}

// GroupByKey groups records by the key that they have.
func (s *Stream[K, V]) GroupByKey() *Group[K, V] { return &Group[K, V]{n: s.n, reader: s.reader} }

// GroupBy groups records by another key.
func GroupBy[K, V, K2 any](s *Stream[K, V], to Serde[K2], f func(Record[K, V]) (K2, error), options ...StepOption) *Group[K2, V] {
	return Rekey(s, to, f, options...).GroupByKey()
}

// Windows are of time, by the timestamps of records. Times are rounded to ms.
type Windows struct{ settings fields }

// Tumbling windows follow each other.
func Tumbling(size time.Duration) Windows { return Windows{fields{{"tumbling", size.String()}}} }

// Hopping windows begin at multiples of every, and so overlap.
func Hopping(size, every time.Duration) Windows {
	return Windows{fields{{"hopping", size.String()}, {"every", every.String()}}}
}

// Sliding windows are those of records that are no further apart than size.
func Sliding(size time.Duration) Windows { return Windows{fields{{"sliding", size.String()}}} }

// Session windows end after a gap without records of the key.
func Session(gap time.Duration) Windows { return Windows{fields{{"session", gap.String()}}} }

func (w Windows) with(name string, value any) Windows {
	return Windows{append(w.settings[:len(w.settings):len(w.settings)], field{name, value})}
}

// Grace takes records for some time after a window's end.
func (w Windows) Grace(d time.Duration) Windows { return w.with("grace", d.String()) }

// Retention keeps the results of closed windows for queries.
func (w Windows) Retention(d time.Duration) Windows { return w.with("retention", d.String()) }

// LateTo writes the records to a topic that come too late for every window.
func (w Windows) LateTo(topic string) Windows { return w.with("late", topic) }

// WindowedBy aggregates in windows. Records behind it have that of their key as Record.Window, and in topics their keys are
// followed by it, as Kafka Streams writes them.
func (g *Group[K, V]) WindowedBy(w Windows) *Group[K, V] {
	return &Group[K, V]{n: g.n, reader: g.reader, window: w.settings, ttl: g.ttl}
}

// TTL deletes a row of the aggregate that has not changed for so long, by stream time, and hands a null on. Windows have grace and
// retention instead.
func (g *Group[K, V]) TTL(after time.Duration) *Group[K, V] {
	return &Group[K, V]{n: g.n, reader: g.reader, window: g.window, ttl: after}
}

// Emit says when an aggregate hands on its results.
type Emit string

// Every new value, which is the default; at each commit the last one of each key that has changed; or, of windows, the final one
// when the window is closed.
const (
	OnUpdate Emit = "update"
	OnCommit Emit = "commit"
	OnClose  Emit = "close"
)

// aggregate adds a step that gives a table.
func (g *Group[K, V]) aggregate(name, store string, emit []Emit, more fields) *node {
	f := fields{{"store", store}}
	for _, e := range emit {
		f = f.with("emit", string(e))
	}
	if g.window != nil {
		f = f.with("window", g.window)
	}
	if g.ttl != 0 {
		f = f.with("ttl", g.ttl.String())
	}
	f = append(f, more...)
	n := g.n.then(name, f)
	n.table, n.name = true, store
	return n
}

// Count counts the records of each key, in a store of that name.
func (g *Group[K, V]) Count(store string, emit ...Emit) *Table[K, int64] {
	return &Table[K, int64]{g.aggregate("count", store, emit, nil), reader[K, int64]{g.key, Int}}
}

// Reduce makes one value of those of each key: of that so far and of the next record. The first one is taken as it is. A null deletes
// the entry.
func (g *Group[K, V]) Reduce(store string, f func(acc V, r Record[K, V]) (V, error), emit ...Emit) *Table[K, V] {
	text := g.n.attach(folded(g.reader, g.value, f), nil)
	return &Table[K, V]{g.aggregate("reduce", store, emit, fields{{"expr", text}}), g.reader}
}

// Aggregator makes one value of the records of a key.
type Aggregator[K, V, A any] struct {
	Initial func() A
	Add     func(acc A, r Record[K, V]) (A, error)
	Merge   func(a, b A) (A, error) // of two sessions that become one; only for sessions
}

// Aggregate makes one value of another type of the records of each key. A null deletes the entry.
func Aggregate[K, V, A any](g *Group[K, V], store string, of Serde[A], a Aggregator[K, V, A], emit ...Emit) *Table[K, A] {
	initial := value(g.reader, of, func(Record[K, V]) (A, error) { return a.Initial(), nil })
	f := fields{{"initial", g.n.attach(initial, nil)}, {"add", g.n.attach(folded(g.reader, of, a.Add), nil)}}
	if a.Merge != nil {
		f = f.with("merge", g.n.attach(&topology.Func{Format: of.format, Value: func(c *topology.Call, out *topology.Datum) error {
			acc, err := of.decode(c.Acc(), "value so far")
			if err != nil {
				return err
			}
			other, err := of.decode(c.Other(), "value of the other session")
			if err != nil {
				return err
			}
			if acc, err = a.Merge(acc, other); err != nil {
				return err
			}
			return of.write(acc, out)
		}}, nil))
	}
	return &Table[K, A]{g.aggregate("aggregate", store, emit, f), reader[K, A]{g.key, of}}
}

// TableGroup is a table whose rows are to be aggregated by another key. A row that changes is taken away where it was, and added
// where it is now.
type TableGroup[K, V any] struct {
	n     *node
	rekey string
	reader[K, V]
}

// GroupTable groups the rows of a table by a key that is made of them.
func GroupTable[K, V, K2 any](t *Table[K, V], to Serde[K2], f func(Record[K, V]) (K2, error), options ...StepOption) *TableGroup[K2, V] {
	text := t.n.attach(value(t.reader, to.asKey(), f), options)
	return &TableGroup[K2, V]{t.n.rows(), text, reader[K2, V]{to, t.value}}
}

func (g *TableGroup[K, V]) aggregate(name, store string, more fields) *node {
	n := g.n.then(name, append(fields{{"store", store}}, more...))
	n.before, n.table, n.asTable = fields{{"rekey", g.rekey}}, true, true
	return n
}

// Count counts the rows of each group.
func (g *TableGroup[K, V]) Count(store string) *Table[K, int64] {
	return &Table[K, int64]{g.aggregate("count", store, nil), reader[K, int64]{g.key, Int}}
}

// TableAggregator makes one value of the rows of a group.
type TableAggregator[K, V, A any] struct {
	Initial       func() A
	Add, Subtract func(acc A, r Record[K, V]) (A, error)
}

// AggregateTable makes one value of another type of the rows of each group.
func AggregateTable[K, V, A any](g *TableGroup[K, V], store string, of Serde[A], a TableAggregator[K, V, A]) *Table[K, A] {
	initial := value(g.reader, of, func(Record[K, V]) (A, error) { return a.Initial(), nil })
	n := g.aggregate("aggregate", store, fields{
		{"initial", g.n.attach(initial, nil)}, {"add", g.n.attach(folded(g.reader, of, a.Add), nil)}, {"subtract", g.n.attach(folded(g.reader, of, a.Subtract), nil)},
	})
	return &Table[K, A]{n, reader[K, A]{g.key, of}}
}

// Table has one row for each key: the last value. A change of a row is a record; that of a deleted one has a null.
type Table[K, V any] struct {
	n *node
	reader[K, V]
}

// ToStream takes the table's changes as a stream of records.
func (t *Table[K, V]) ToStream() *Stream[K, V] {
	return &Stream[K, V]{t.n.add(&node{}), t.reader}
}

// Filter has the rows for which keep is true.
func (t *Table[K, V]) Filter(keep func(Record[K, V]) bool, options ...StepOption) *Table[K, V] {
	n := t.n.rows().then("filter", t.n.attach(truth(t.reader, keep), options))
	n.table, n.asTable = true, true
	return &Table[K, V]{n, t.reader}
}

// MapTable makes a new value of each row's.
func MapTable[K, V, V2 any](t *Table[K, V], to Serde[V2], f func(Record[K, V]) (V2, error), options ...StepOption) *Table[K, V2] {
	n := t.n.rows().then("map", t.n.attach(value(t.reader, to, f), options))
	n.table, n.asTable = true, true
	return &Table[K, V2]{n, reader[K, V2]{t.key, to}}
}
