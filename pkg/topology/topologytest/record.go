package topologytest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/window"
)

// Record is a record with key and value as JSON has them: nil, bool, int, float64, string, []any or map[string]any.
//
//   - string: text.
//   - bytes, and text that is not UTF-8: text where it is UTF-8, else {"base64": "..."}. Pipe takes []byte too.
//   - int: a whole number. float: a number, or "NaN", "Infinity", "-Infinity".
//   - json, and what is like JSON to the steps, such as csv and avro: any.
//
// A nil value is a tombstone.
type Record struct {
	Topic      string
	Key, Value any
	Window     *window.Bounds // of an output: that of its key, which Key is without; nil: it has none
	Timestamp  int64          // ms since the epoch
	Headers    []kgo.RecordHeader
	Input      int // of an output: the number, from 0, of the record that caused it
}

// Row is the key as tables have it: text as it is, anything else as JSON; with the window behind it, if there is one, as
// @start/end.
func (r Record) Row() string { return rowName(r.Key, r.Window) }

func rowName(key any, w *window.Bounds) string {
	text, ok := key.(string)
	if !ok {
		b, err := topology.JSON.Encode(key)
		if text = string(b); err != nil {
			text = fmt.Sprint(key)
		}
	}
	if w != nil {
		text += fmt.Sprintf("@%d/%d", w.Start, w.End)
	}
	return text
}

// formats are those of keys and values by topic.
type formats struct {
	top    *topology.Topology
	out    map[string]topology.Sink
	inputs []string
}

func formatsOf(top *topology.Topology) formats {
	f := formats{top: top, out: make(map[string]topology.Sink), inputs: top.Inputs()}
	for _, s := range top.Subtopologies {
		for _, sink := range s.Sinks {
			f.out[sink.Topic] = sink
		}
	}
	return f
}

// input encodes a record for a stream that reads it.
func (f formats) input(r Record) (*kgo.Record, error) {
	if !slices.Contains(f.inputs, r.Topic) {
		return nil, fmt.Errorf("no stream reads topic %q", r.Topic)
	}
	key, value := f.top.Formats(r.Topic)
	rec := &kgo.Record{Topic: r.Topic, Timestamp: ms(r.Timestamp), Headers: r.Headers}
	var errKey, errValue error
	if rec.Key, errKey = encode(key, r.Key); errKey != nil {
		errKey = fmt.Errorf("key of topic %s: %w", r.Topic, errKey)
	}
	if rec.Value, errValue = encode(value, r.Value); errValue != nil {
		errValue = fmt.Errorf("value of topic %s: %w", r.Topic, errValue)
	}
	return rec, errors.Join(errKey, errValue)
}

func encode(s topology.Serde, v any) ([]byte, error) {
	switch s.Format {
	case topology.String, topology.Bytes:
		if m, ok := v.(map[string]any); ok && len(m) == 1 {
			if text, ok := m["base64"].(string); ok {
				return base64.StdEncoding.DecodeString(text)
			}
		}
	case topology.Float:
		if text, ok := v.(string); ok {
			if n, err := strconv.ParseFloat(text, 64); err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
				v = n
			}
		}
	default:
	}
	return s.Encode(v)
}

// decode is the opposite of encode. What is not in its format appears as bytes.
func decode(s topology.Serde, raw []byte) any {
	v, err := s.Decode(raw)
	if err != nil {
		return readable(raw)
	}
	switch v := v.(type) {
	case []byte:
		return readable(v)
	case string:
		if s.Format == topology.String {
			return readable([]byte(v))
		}
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
	}
	return v
}

func readable(raw []byte) any {
	if utf8.Valid(raw) {
		return string(raw)
	}
	return map[string]any{"base64": base64.StdEncoding.EncodeToString(raw)}
}

// of gives the sink of a topic. Dead letters have the bytes of any record.
func (f formats) of(topic string) topology.Sink {
	if sink, ok := f.out[topic]; ok {
		return sink
	}
	return topology.Sink{Topic: topic, Key: topology.Serde{Format: topology.Bytes}, Value: topology.Serde{Format: topology.Bytes}}
}

func (f formats) output(w written) Record {
	sink, key := f.of(w.rec.Topic), w.rec.Key
	r := Record{Topic: w.rec.Topic, Value: decode(sink.Value, w.rec.Value), Timestamp: w.rec.Timestamp.UnixMilli(), Headers: w.rec.Headers, Input: w.input}
	if sink.Window != nil && key != nil {
		if plain, bounds, ok := sink.Window.ParseKey(key); ok {
			key, r.Window = plain, &bounds
		}
	}
	r.Key = decode(sink.Key, key)
	return r
}

// OutputFormats are the formats of what is written to a topic, as Record has keys and values of it.
func OutputFormats(top *topology.Topology, topic string) (key, value topology.Serde) {
	sink := formatsOf(top).of(topic)
	return sink.Key, sink.Value
}
