package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// passing says what a repartition topic takes.
type passing uint8

const (
	passesAll    passing = iota // records with key and value
	passesKeys                  // likewise, but the value is left out: the aggregate behind does not look at it
	passesNulls                 // null values too: a table is behind
	passesValues                // null keys too: they join nothing, but give a result
)

// sinkStep writes to a topic, and hands the message on as it is.
type sinkStep struct {
	Sink                        // if the topic is computed, without its name
	fromKey, fromValue Format   // what is written has before it is encoded
	mode               passing  // of a repartition topic
	topics             []string // that it may write to

	// What is computed; nil: it is not.
	topic   *expression
	names   map[string]string // what topic may give, to the names of topics
	key     *expression
	headers []headerOf
}

// headerOf is a header that replaces those of its name, or removes them if it is null.
type headerOf struct {
	name  string
	value *expression
}

func (s *sinkStep) String() string {
	var b strings.Builder
	b.WriteString("to " + s.Topic)
	if s.topic != nil {
		b.WriteString(s.topic.text + ", one of " + strings.Join(s.topics, ", "))
	}
	key := s.Key.String()
	if s.key != nil {
		key = s.key.text + " as " + key
	}
	fmt.Fprintf(&b, " (key %s, value %s", key, s.Value)
	for _, h := range s.headers {
		fmt.Fprintf(&b, ", header %s: %s", h.name, h.value.text)
	}
	return b.String() + ")"
}

// mayFail reports whether there are messages that cannot be written.
func (s *sinkStep) mayFail() bool {
	return s.topic != nil || s.key != nil || len(s.headers) > 0 || s.Key.mayFail(s.fromKey) || s.mode != passesKeys && s.Value.mayFail(s.fromValue)
}

// mayGrow reports whether key or value may be larger when written: as JSON, texts have escapes.
func (s *sinkStep) mayGrow() bool {
	return s.fromKey == String && s.Key.Format == JSON || s.fromValue == String && s.Value.Format == JSON
}

func (s *sinkStep) start(c *chain, next operator) operator {
	return &sinkOperator{sinkStep: s, p: c.p, x: &c.p.eval, next: next}
}

type sinkOperator struct {
	*sinkStep
	p    *Processor
	x    *evaluator
	next operator
}

// noValue is what a repartitioned record carries where only its key counts: not null, which would be dropped.
var noValue = []byte{}

func (o *sinkOperator) process(m *message) error {
	if o.Internal && !o.takes(m) {
		return nil
	}
	topic, key, headers := o.Topic, &m.key, m.source.Headers
	if o.topic != nil || o.key != nil || len(o.headers) > 0 {
		own := m.key
		var err error
		if topic, headers, err = o.compute(m, &own); err != nil {
			return fault{err}
		}
		key = &own
	}
	rawKey, err := o.Key.write(key, o.fromKey, &o.p.slabs)
	if err != nil {
		return fault{fmt.Errorf("key for topic %s: %w", topic, err)}
	}
	value := noValue
	if o.mode != passesKeys {
		if value, err = o.Value.write(&m.value, o.fromValue, &o.p.slabs); err != nil {
			return fault{fmt.Errorf("value for topic %s: %w", topic, err)}
		}
	}
	partition := int32(-1)
	if o.Window != nil && rawKey != nil {
		partition -= int32(len(rawKey)) + 1
		rawKey = o.Window.AppendKey(o.p.slabs.bytes(len(rawKey) + o.Window.KeyOverhead())[:0], rawKey, m.window)
	}
	if err := o.p.Limits.oversized(sizeOf(rawKey, value, headers), topic, "the record for topic", topic); err != nil {
		return fault{err}
	}
	r := o.p.slabs.record()
	r.Topic, r.Partition = topic, partition
	r.Key, r.Value, r.Headers = rawKey, value, headers
	r.Timestamp = time.UnixMilli(m.ts)
	o.p.Out++
	o.p.pending = append(o.p.pending, r)
	return o.next.process(m)
}

// compute evaluates what of topic, key and headers is computed. The key is the message's before.
func (o *sinkOperator) compute(m *message, key *datum) (topic string, headers []kgo.RecordHeader, err error) {
	if topic, err = o.topicOf(m); err != nil {
		return "", nil, fmt.Errorf("topic: %w", err)
	}
	if o.key != nil {
		if *key, err = o.x.datum(o.key, m, o.fromKey); err != nil {
			return "", nil, fmt.Errorf("key for topic %s: %w", topic, err)
		}
	}
	if len(o.headers) == 0 {
		return topic, m.source.Headers, nil
	}
	headers, err = o.withHeaders(m)
	return topic, headers, err
}

func (o *sinkOperator) topicOf(m *message) (string, error) {
	if o.topic == nil {
		return o.Topic, nil
	}
	name, err := o.x.datum(o.topic, m, String)
	if err != nil {
		return "", err
	}
	topic, known := o.names[name.text()]
	if known && !name.null {
		return topic, nil
	}
	v, err := name.boxed(String)
	if err != nil {
		return "", err
	}
	return "", fmt.Errorf("expression %s: want one of topics (%s), got %s", o.topic.text, strings.Join(o.topics, ", "), describe(v))
}

// withHeaders returns the headers of the message's record with those that are computed behind them.
func (o *sinkOperator) withHeaders(m *message) ([]kgo.RecordHeader, error) {
	out := make([]kgo.RecordHeader, 0, len(m.source.Headers)+len(o.headers))
	for _, h := range m.source.Headers {
		if !slices.ContainsFunc(o.headers, func(one headerOf) bool { return one.name == h.Key }) {
			out = append(out, h)
		}
	}
	for _, h := range o.headers {
		v, err := o.x.boxed(h.value, m)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", h.name, err)
		}
		switch v := v.(type) {
		case nil:
		case string, []byte, bool, int, float64:
			text, err := toText(v)
			if err != nil {
				return nil, fmt.Errorf("header %s: %w", h.name, err)
			}
			out = append(out, kgo.RecordHeader{Key: h.name, Value: []byte(text.(string))})
		default:
			return nil, fmt.Errorf("header %s: expression %s: want text, a number, true or false, got %s", h.name, h.value.text, describe(v))
		}
	}
	return out, nil
}

// takes tells whether a repartition topic takes m, and counts it if not.
func (o *sinkOperator) takes(m *message) bool {
	if o.mode == passesNulls && !m.key.null || o.mode == passesValues && !m.value.null {
		return true
	}
	return o.p.complete(m)
}
