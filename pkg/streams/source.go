package streams

import (
	"maps"
	"time"
)

// SourceOption says something about a topic that is read.
type SourceOption func(*sourceOptions)

type sourceOptions struct {
	name     string
	ttl      time.Duration // 0: rows stay
	settings map[string]any
}

// As names the stream or table. The default is the topic's name.
func As(name string) SourceOption { return func(o *sourceOptions) { o.name = name } }

func sourceSetting(name string, value any) SourceOption {
	return func(o *sourceOptions) { o.settings[name] = value }
}

// StartLatest begins with what is written after the first start, and not with what the topic has.
func StartLatest() SourceOption { return sourceSetting("start", "latest") }

// OnOutOfRange says where to go on after records that are no longer retained: earliest or latest. The default is to fail.
func OnOutOfRange(where string) SourceOption { return sourceSetting("on_out_of_range", where) }

// Skip passes over records that cannot be processed, and counts them. The default is to stop before them.
func Skip() SourceOption { return sourceSetting("on_error", "skip") }

// DeadLetter writes records that cannot be processed to a topic, and goes on; "" is the topic APP-dead-letter.
func DeadLetter(topic string) SourceOption {
	return func(o *sourceOptions) {
		o.settings["on_error"] = "dead_letter"
		if topic != "" {
			o.settings["dead_letter"] = topic
		}
	}
}

// TTL deletes a row of a table that has not changed for so long, by stream time.
func TTL(after time.Duration) SourceOption { return func(o *sourceOptions) { o.ttl = after } }

// read adds a node that reads a topic.
func read[K, V any](b *Builder, topic string, key Serde[K], value Serde[V], n *node, options []SourceOption) *node {
	o := sourceOptions{name: topic, settings: make(map[string]any)}
	for _, option := range options {
		option(&o)
	}
	n.name, n.ttl = o.name, o.ttl
	n.from = func() fields {
		f := fields{{"topic", topic}, {"key", key.spec()}, {"value", value.spec()}}
		for _, name := range []string{"start", "on_out_of_range", "on_error", "dead_letter"} {
			if v, ok := o.settings[name]; ok {
				f = f.with(name, v)
			}
		}
		return f
	}
	return b.add(n)
}

// From reads a topic as a stream of records.
func From[K, V any](b *Builder, topic string, key Serde[K], value Serde[V], options ...SourceOption) *Stream[K, V] {
	return &Stream[K, V]{read(b, topic, key, value, &node{}, options), reader[K, V]{key, value}}
}

// TableFrom reads a topic as a table: the last value of each key. A null deletes the row.
func TableFrom[K, V any](b *Builder, topic string, key Serde[K], value Serde[V], options ...SourceOption) *Table[K, V] {
	return &Table[K, V]{read(b, topic, key, value, &node{table: true, asTable: true}, options), reader[K, V]{key, value}}
}

// Global is a table that every instance has whole: streams look into it by any key.
type Global[K, V any] struct {
	n *node
	reader[K, V]
}

// GlobalFrom reads a topic as a global table.
func GlobalFrom[K, V any](b *Builder, topic string, key Serde[K], value Serde[V]) *Global[K, V] {
	return &Global[K, V]{read(b, topic, key, value, &node{table: true, asTable: true, global: true}, nil), reader[K, V]{key, value}}
}

// Merge takes the records of several streams together.
func Merge[K, V any](first *Stream[K, V], more ...*Stream[K, V]) *Stream[K, V] {
	n := &node{name: "merged"}
	var all []*node
	for _, s := range append([]*Stream[K, V]{first}, more...) {
		all = append(all, s.n)
		s.n.users = append(s.n.users, n)
	}
	n.from = func() fields {
		names := make([]string, len(all))
		for i, one := range all {
			names[i] = one.entry.name
		}
		return fields{{"streams", names}}
	}
	return &Stream[K, V]{first.n.b.add(n), first.reader}
}

// spec is how the topology's text names the serde.
func (s Serde[T]) spec() any {
	if s.named != nil {
		return s.named
	}
	return s.format.String()
}

// In reads and writes what s does in a format of the configuration that gives and takes objects, with its settings: csv, avro or
// protobuf, e.g. JSON[Order]().In("avro", map[string]any{"schema": "order.avsc"}). In stores it is JSON.
func (s Serde[T]) In(format string, settings map[string]any) Serde[T] {
	named := maps.Clone(settings)
	if named == nil {
		named = make(map[string]any)
	}
	named["format"] = format
	s.named = named
	return s
}
