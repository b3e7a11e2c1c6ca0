package streams

import "time"

// Stream is a stream of records, at some place of the topology. Several steps may go on from one place: each gets all records.
type Stream[K, V any] struct {
	n *node
	reader[K, V]
}

// Filter passes on the records for which keep is true.
func (s *Stream[K, V]) Filter(keep func(Record[K, V]) bool, options ...StepOption) *Stream[K, V] {
	return &Stream[K, V]{s.n.then("filter", s.n.attach(truth(s.reader, keep), options)), s.reader}
}

// Peek looks at each record, e.g. to log it.
func (s *Stream[K, V]) Peek(look func(Record[K, V]), options ...StepOption) *Stream[K, V] {
	return s.Filter(func(r Record[K, V]) bool { look(r); return true }, options...)
}

// Map makes a new key and value of each record. What follows and needs equal keys in one task goes through a repartition topic.
func Map[K, V, K2, V2 any](s *Stream[K, V], key Serde[K2], value Serde[V2], f func(Record[K, V]) (K2, V2, error)) *Stream[K2, V2] {
	return each(s, "map", key, value, func(r Record[K, V], emit func(K2, V2)) error {
		k, v, err := f(r)
		if err == nil {
			emit(k, v)
		}
		return err
	})
}

// FlatMap makes any number of records of each: f calls emit for them. When f fails, all of them are taken back.
func FlatMap[K, V, K2, V2 any](s *Stream[K, V], key Serde[K2], value Serde[V2], f func(r Record[K, V], emit func(K2, V2)) error) *Stream[K2, V2] {
	return each(s, "flat_map", key, value, f)
}

func each[K, V, K2, V2 any](s *Stream[K, V], kind string, key Serde[K2], value Serde[V2], f func(Record[K, V], func(K2, V2)) error) *Stream[K2, V2] {
	return process(s, kind, "", key, value, nil, func(c *Context[K2, V2]) func(Record[K, V]) error {
		return func(r Record[K, V]) error { return f(r, c.Forward) }
	})
}

// MapValues makes a new value of each record.
func MapValues[K, V, V2 any](s *Stream[K, V], to Serde[V2], f func(Record[K, V]) (V2, error), options ...StepOption) *Stream[K, V2] {
	return &Stream[K, V2]{s.n.then("map", s.n.attach(value(s.reader, to, f), options)), reader[K, V2]{s.key, to}}
}

// FlatMapValues makes any number of records of each, with its key.
func FlatMapValues[K, V, V2 any](s *Stream[K, V], to Serde[V2], f func(Record[K, V]) ([]V2, error), options ...StepOption) *Stream[K, V2] {
	return &Stream[K, V2]{s.n.then("flat_map", s.n.attach(list(s.reader, to, f), options)), reader[K, V2]{s.key, to}}
}

// Rekey gives each record another key.
func Rekey[K, V, K2 any](s *Stream[K, V], to Serde[K2], f func(Record[K, V]) (K2, error), options ...StepOption) *Stream[K2, V] {
	return &Stream[K2, V]{s.n.then("rekey", s.n.attach(value(s.reader, to.asKey(), f), options)), reader[K2, V]{to, s.value}}
}

// Dedupe passes a record unless one with its key has passed whose timestamp is less than within away. A store of that name remembers
// which have.
func (s *Stream[K, V]) Dedupe(store string, within time.Duration) *Stream[K, V] {
	return &Stream[K, V]{s.n.then("dedupe", fields{{"store", store}, {"within", within.String()}}), s.reader}
}

// DedupeBy is Dedupe for records with the same key and the same result of a function.
func DedupeBy[K, V, T any](s *Stream[K, V], store string, within time.Duration, of Serde[T], by func(Record[K, V]) (T, error), options ...StepOption) *Stream[K, V] {
	text := s.n.attach(value(s.reader, of.asKey(), by), options)
	return &Stream[K, V]{s.n.then("dedupe", fields{{"store", store}, {"within", within.String()}, {"by", text}}), s.reader}
}

// Case is a way that records may take at a branch.
type Case[K, V any] struct {
	Name string
	When func(Record[K, V]) bool // nil, in the last one: all that is left
}

// Branch sends each record the way of the first case that is true for it, and returns the streams of all, in order. What fits none is
// dropped.
func (s *Stream[K, V]) Branch(cases ...Case[K, V]) []*Stream[K, V] {
	ways := make([]fields, len(cases))
	for i, c := range cases {
		ways[i] = fields{{"name", c.Name}}
		if c.When != nil {
			ways[i] = ways[i].with("when", s.n.attach(truth(s.reader, c.When), []StepOption{Named(c.Name)}))
		}
	}
	at := s.n.then("branch", ways)
	out := make([]*Stream[K, V], len(cases))
	for i, c := range cases {
		out[i] = &Stream[K, V]{at.add(&node{branch: c.Name}), s.reader}
	}
	return out
}
