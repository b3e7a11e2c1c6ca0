package streams

// Header is one that a written record gets, in place of those of its name that the record which was read has.
type Header[K, V any] struct {
	Name  string
	Value func(Record[K, V]) ([]byte, error) // nil: there is no header of this name
}

// To writes the records to a topic as they are. The stream goes on.
func (s *Stream[K, V]) To(topic string, headers ...Header[K, V]) *Stream[K, V] {
	s.n.to(fields{{"topic", topic}}, s.reader, attachHeaders(s, headers))
	return s
}

// ToOneOf writes each record to the one of several topics that a function names. All of them must exist. One for which the function
// names another topic cannot be processed.
func (s *Stream[K, V]) ToOneOf(topics []string, choose func(Record[K, V]) (string, error), headers ...Header[K, V]) *Stream[K, V] {
	text := s.n.attach(value(s.reader, String, choose), nil)
	s.n.to(fields{{"topic_expr", text}, {"topics", topics}}, s.reader, attachHeaders(s, headers))
	return s
}

// To writes the table's changes to a topic: nulls for deleted rows.
func (t *Table[K, V]) To(topic string) *Table[K, V] {
	t.n.to(fields{{"topic", topic}}, t.reader, nil)
	return t
}

// to notes that what is behind the node is written.
func (n *node) to(topic fields, formats interface{ specs() (key, value any) }, headers fields) {
	key, value := formats.specs()
	sink := append(topic, field{"key", key}, field{"value", value})
	if len(headers) > 0 {
		sink = sink.with("headers", headers)
	}
	n.sinks = append(n.sinks, line{fields{{"to", sink}}, here()})
}

// specs are how the topology's text names the formats.
func (s reader[K, V]) specs() (key, value any) { return s.key.spec(), s.value.spec() }

// attachHeaders makes headers a part of the topology's text.
func attachHeaders[K, V any](s *Stream[K, V], headers []Header[K, V]) (f fields) {
	for _, h := range headers {
		f = f.with(h.Name, s.n.attach(value(s.reader, Bytes, h.Value), []StepOption{Named("header " + h.Name)}))
	}
	return f
}
