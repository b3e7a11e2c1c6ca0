package cases

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

func (s storeSpecs) names() []string { return slices.Sorted(maps.Keys(s)) }

func placeOf(n yamlnode.Node) place {
	line, column := n.Place()
	return place{line, column}
}

// fields are those of a mapping, in the file's order.
func fields(node yamlnode.Node) iter.Seq2[string, yamlnode.Node] {
	return func(yield func(string, yamlnode.Node) bool) {
		m := node.Map()
		for _, name := range m.Names() {
			if !yield(name, m.Get(name)) {
				return
			}
		}
	}
}

// step reads an input.
func (r *reader) step(node yamlnode.Node) step {
	m := node.Map()
	s := step{place: placeOf(node)}
	if advance := m.Get("advance"); advance.Exists() {
		s.advance = advance.Duration(0, time.Millisecond, 1<<62)
		m.Done()
		return s
	}
	topic, key, value, ts, headers := m.Get("topic"), m.Get("key"), m.Get("value"), m.Get("ts"), m.Get("headers")
	s.failure = m.Get("error").String("")
	m.Done()
	rec := &s.record
	inputs := r.top.Inputs()
	switch {
	case topic.Exists():
		rec.Topic = topic.String("")
		if !r.known(topic, rec.Topic, inputs, "no stream reads topic %q") {
			return s
		}
	case len(inputs) == 1:
		rec.Topic = inputs[0]
	default:
		node.Errorf("there are: "+strings.Join(inputs, ", "), "topic is missing")
		return s
	}
	keyFormat, valueFormat := r.top.Formats(rec.Topic)
	rec.Key, rec.Value = valueAs(keyFormat.Format, key), valueAs(valueFormat.Format, value)
	if ts.Exists() {
		r.now = instant(ts)
	}
	rec.Timestamp = r.now
	for name, text := range headers.StringMap() {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(text)})
	}
	slices.SortFunc(rec.Headers, func(a, b kgo.RecordHeader) int { return strings.Compare(a.Key, b.Key) })
	return s
}

// valueAs reads a key or a value. Where text is wanted, any scalar is the text that stands there.
func valueAs(f topology.Format, node yamlnode.Node) any {
	if !node.Exists() {
		return nil
	}
	if f == topology.String || f == topology.Bytes {
		if text, ok := node.Text(); ok {
			return text
		}
	}
	return node.Value()
}

// instant reads a timestamp: ms since the epoch, a duration since the epoch, or a time as RFC 3339 has it.
func instant(node yamlnode.Node) int64 {
	text := node.String("")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return n
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d.Milliseconds()
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.UnixMilli() >= 0 {
		return at.UnixMilli()
	}
	node.Errorf("write ms since the epoch (1700000000000), a duration since it (90s) or a time (2025-01-31T12:00:00Z)", "%q is no timestamp", text)
	return 0
}

// record is an output that is expected; only what is given is compared.
type record struct {
	place  place
	fields []expected
}

// expected is a field of an output.
type expected struct {
	name string
	want any
}

// outputFields are what can be expected of an output.
var outputFields = []string{"key", "value", "ts", "window_start", "window_end", "headers", "input"}

func (r *reader) outputs(topic string, node yamlnode.Node) outputs {
	out := outputs{place: placeOf(node), topic: topic}
	key, value := topologytest.OutputFormats(r.top, topic)
	for _, item := range node.List() {
		rec := record{place: placeOf(item)}
		m := item.Map()
		asked := make(map[string]yamlnode.Node)
		for _, name := range outputFields {
			asked[name] = m.Get(name)
		}
		m.Done()
		for _, name := range m.Names() {
			node, e := asked[name], expected{name: name}
			switch name {
			case "key":
				e.want = valueAs(key.Format, node)
			case "value":
				e.want = valueAs(value.Format, node)
			case "ts", "window_start", "window_end":
				e.want = nil
				if node.Exists() {
					e.want = instant(node)
				}
			case "input":
				e.want = node.Int(0, 0, 1<<40)
			case "headers":
				e.want = node.StringMap()
			}
			rec.fields = append(rec.fields, e)
		}
		out.records = append(out.records, rec)
	}
	return out
}

func (r *reader) table(name string, value topology.Format, node yamlnode.Node) table {
	t := table{place: placeOf(node), name: name}
	for key, node := range fields(node) {
		if !node.Exists() {
			node.Errorf("leave the key out", "a table has no nulls, so it has no %q", key)
			continue
		}
		t.rows = append(t.rows, row{place: placeOf(node), key: key, value: valueAs(value, node)})
	}
	return t
}

func (p place) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }
