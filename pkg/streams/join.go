package streams

import "time"

// Kind says which records or rows give a result though they have no counterpart, whose value is then the zero value: use Optional
// serdes, or pointers, to tell.
type Kind string

// Those that have one on both sides; those of the first one too; or those of both.
const (
	Inner Kind = "inner"
	Left  Kind = "left"
	Outer Kind = "outer"
)

// join adds a join; settings are made when names are known.
func (n *node) join(with *node, kind Kind, value string, settings func() fields) *node {
	next := &node{step: func() fields {
		return fields{{"join", append(settings(), field{"type", string(kind)}, field{"value", value})}}
	}}
	n.add(next)
	with.users = append(with.users, next)
	return next
}

// JoinTable joins each record of a stream with the row of a table that has its key, if there is one (Inner), or in any case (Left).
func JoinTable[K, V, W, R any](s *Stream[K, V], t *Table[K, W], kind Kind, to Serde[R], f func(Record[K, V], W) (R, error), options ...StepOption) *Stream[K, R] {
	text := s.n.attach(joinedValue(s.reader, t.value, to, f), options)
	n := s.n.join(t.n.rows(), kind, text, func() fields { return fields{{"table", t.n.entry.name}} })
	return &Stream[K, R]{n, reader[K, R]{s.key, to}}
}

// JoinGlobal joins each record of a stream with the row of a global table whose key is given by another function.
func JoinGlobal[K, V, GK, W, R any](s *Stream[K, V], g *Global[GK, W], kind Kind, key func(Record[K, V]) (GK, error), to Serde[R], f func(Record[K, V], W) (R, error), options ...StepOption) *Stream[K, R] {
	by := s.n.attach(value(s.reader, g.key.asKey(), key), nil)
	text := s.n.attach(joinedValue(s.reader, g.value, to, f), options)
	n := s.n.join(g.n, kind, text, func() fields { return fields{{"table", g.n.entry.name}, {"key", by}} })
	return &Stream[K, R]{n, reader[K, R]{s.key, to}}
}

// Within says how far the timestamps of two records may be apart to be joined.
type Within struct {
	Before, After time.Duration // by which the other record may be older, or younger
	Grace         time.Duration // how long a record waits for a late counterpart behind that
}

// JoinStreams joins the records of two streams that have the same key and are near each other in time, with stores of that name.
func JoinStreams[K, V, W, R any](s *Stream[K, V], o *Stream[K, W], store string, within Within, kind Kind, to Serde[R], f func(Record[K, V], W) (R, error), options ...StepOption) *Stream[K, R] {
	text := s.n.attach(joinedValue(s.reader, o.value, to, f), options)
	other := o.n
	if other == s.n { // a step cannot name the stream that it is in
		other = o.n.add(&node{name: store + "-other"})
	}
	n := s.n.join(other, kind, text, func() fields {
		return fields{
			{"stream", other.entry.name}, {"store", store}, {"before", within.Before.String()}, {"after", within.After.String()}, {"grace", within.Grace.String()},
		}
	})
	return &Stream[K, R]{n, reader[K, R]{s.key, to}}
}

// JoinTables joins the rows of two tables that have the same key.
func JoinTables[K, V, W, R any](t *Table[K, V], o *Table[K, W], kind Kind, to Serde[R], f func(Record[K, V], W) (R, error), options ...StepOption) *Table[K, R] {
	text := t.n.attach(joinedValue(t.reader, o.value, to, f), options)
	n := t.n.rows().join(o.n.rows(), kind, text, func() fields { return fields{{"table", o.n.entry.name}} })
	n.table, n.asTable = true, true
	return &Table[K, R]{n, reader[K, R]{t.key, to}}
}

// JoinTablesBy joins each row of a table with the row of another one that it names: key gives the key of that.
func JoinTablesBy[K, V, K2, W, R any](t *Table[K, V], o *Table[K2, W], kind Kind, key func(Record[K, V]) (K2, error), to Serde[R], f func(Record[K, V], W) (R, error), options ...StepOption) *Table[K, R] {
	on := t.n.attach(value(t.reader, o.key.asKey(), key), nil)
	text := t.n.attach(joinedValue(t.reader, o.value, to, f), options)
	n := t.n.rows().join(o.n.rows(), kind, text, func() fields { return fields{{"table", o.n.entry.name}, {"on", on}} })
	n.table, n.asTable = true, true
	return &Table[K, R]{n, reader[K, R]{t.key, to}}
}
