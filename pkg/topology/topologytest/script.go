package topologytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Script is input for a whole run.
type Script struct {
	Inputs             []ScriptInput
	AdvanceWallClockMS int64 // behind the last input
}

// ScriptInput is one record of a Script.
type ScriptInput struct {
	Topic   string            `json:"topic"`
	Key     json.RawMessage   `json:"key"`
	Value   json.RawMessage   `json:"value"`
	TS      *int64            `json:"ts"` // ms since the epoch
	Headers map[string]string `json:"headers"`
}

// Result is what a Script gives.
type Result struct {
	Outputs map[string][]ScriptOutput `json:"outputs"` // by topic, in order
	// Tables have the last value of each key of each output topic. Keys whose last value is a null are absent.
	Tables map[string]map[string]any `json:"tables"`
}

// ScriptOutput is one record that was written.
type ScriptOutput struct {
	Input       int               `json:"i"` // index of the input that caused it; their number: the wall clock did
	Key         any               `json:"key"`
	Value       any               `json:"value"`
	TS          int64             `json:"ts"`
	WindowStart *int64            `json:"window_start"` // of a key with a window
	WindowEnd   *int64            `json:"window_end"`
	Headers     map[string]string `json:"headers,omitempty"`
}

// ReadScript reads a Script in JSON: {"inputs":[{"topic","key","value","ts"}...],"advance_wall_clock_ms":0}.
func ReadScript(r io.Reader) (*Script, error) {
	var raw struct {
		Inputs  []json.RawMessage `json:"inputs"`
		Advance int64             `json:"advance_wall_clock_ms"`
	}
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if err := strict(src, &raw); err != nil {
		return nil, err
	}
	if raw.Inputs == nil {
		return nil, errors.New(`it has no "inputs": want {"inputs":[{"topic":"...","key":...,"value":...,"ts":0}]}`)
	}
	if raw.Advance < 0 {
		return nil, fmt.Errorf("advance_wall_clock_ms is %d: time does not go back", raw.Advance)
	}
	s := &Script{Inputs: make([]ScriptInput, len(raw.Inputs)), AdvanceWallClockMS: raw.Advance}
	for i, one := range raw.Inputs {
		in := &s.Inputs[i]
		err := strict(one, in)
		switch {
		case err != nil:
		case in.Topic == "":
			err = errors.New(`"topic" is missing`)
		case in.TS == nil:
			err = errors.New(`"ts" is missing: give the timestamp in ms since the epoch`)
		case *in.TS < 0:
			err = fmt.Errorf("ts is %d: it cannot be negative", *in.TS)
		}
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	return s, nil
}

// strict reads one JSON value with no unknown fields and nothing behind it.
func strict(src []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			line := 1 + bytes.Count(src[:min(int(syntax.Offset), len(src))], []byte("\n"))
			return fmt.Errorf("line %d: not valid JSON: %w", line, err)
		case errors.As(err, &kind) && kind.Field != "":
			return fmt.Errorf("%s: want %s, got the %s", kind.Field, kindNames[kind.Type.Kind()], kind.Value)
		case errors.As(err, &kind):
			return fmt.Errorf("want an object, got the %s", kind.Value)
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the end of the JSON value")
	}
	return nil
}

var kindNames = map[reflect.Kind]string{
	reflect.Int64: "a whole number", reflect.String: "text", reflect.Map: "an object of texts", reflect.Slice: "a list",
}

// Run processes the script's records one at a time, each to its end, and then moves the wall clock.
func (s *Script) Run(top *topology.Topology) (*Result, error) {
	d, err := New(Config{Topology: top})
	if err != nil {
		return nil, err
	}
	result, err := s.run(d)
	return result, errors.Join(err, d.Close())
}

func (s *Script) run(d *Driver) (*Result, error) {
	for i, in := range s.Inputs {
		r, err := in.record()
		if err == nil {
			err = d.Pipe(r)
		}
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	if s.AdvanceWallClockMS > 0 {
		if err := d.Advance(time.Duration(s.AdvanceWallClockMS) * time.Millisecond); err != nil {
			return nil, fmt.Errorf("advancing the wall clock: %w", err)
		}
	}
	return d.result(), nil
}

func (in *ScriptInput) record() (Record, error) {
	r := Record{Topic: in.Topic, Timestamp: *in.TS}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(in.Headers[name])})
	}
	var err error
	if r.Key, err = jsonValue(in.Key); err != nil {
		return r, fmt.Errorf("key: %w", err)
	}
	if r.Value, err = jsonValue(in.Value); err != nil {
		return r, fmt.Errorf("value: %w", err)
	}
	return r, nil
}

// jsonValue reads JSON as topologies do, whole numbers as such.
func jsonValue(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return topology.JSON.Decode(raw)
}

// result has every output topic, and those of dead letters that got some.
func (d *Driver) result() *Result {
	r := &Result{Outputs: make(map[string][]ScriptOutput), Tables: make(map[string]map[string]any)}
	for topic, sink := range d.formats.out {
		if !sink.Internal {
			r.Outputs[topic] = []ScriptOutput{}
			r.Tables[topic] = d.Table(topic)
		}
	}
	for topic := range d.written {
		if sink, ok := d.formats.out[topic]; ok && sink.Internal {
			continue
		}
		for _, rec := range d.Written(topic) {
			out := ScriptOutput{Input: rec.Input, Key: rec.Key, Value: rec.Value, TS: rec.Timestamp}
			if w := rec.Window; w != nil {
				out.WindowStart, out.WindowEnd = &w.Start, &w.End
			}
			for _, h := range rec.Headers {
				if out.Headers == nil {
					out.Headers = make(map[string]string)
				}
				out.Headers[h.Key] = string(h.Value)
			}
			r.Outputs[topic] = append(r.Outputs[topic], out)
		}
	}
	return r
}

// WriteJSON prints the result as one JSON document.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
