package topology

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/format"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// shelf is a schema registry in memory. What is not there under a subject is added.
type shelf struct {
	schemas map[int]format.Schema
	down    error
}

func newShelf() *shelf { return &shelf{schemas: make(map[int]format.Schema)} }

func (s *shelf) Schema(id int) (format.Schema, error) {
	if s.down != nil {
		return format.Schema{}, &format.Unavailable{Err: s.down}
	}
	found, ok := s.schemas[id]
	if !ok {
		return found, format.ErrNoSchema
	}
	return found, nil
}

func (s *shelf) Latest(string) (int, format.Schema, error) {
	id := len(s.schemas)
	found, err := s.Schema(id)
	return id, found, err
}

func (s *shelf) ID(_ string, schema format.Schema, _ bool) (int, error) {
	if s.down != nil {
		return 0, &format.Unavailable{Err: s.down}
	}
	id := len(s.schemas) + 1
	s.schemas[id] = schema
	return id, nil
}

// parseWith is parse with a registry.
func parseWith(t testing.TB, r format.Registry, src string) *Topology {
	t.Helper()
	f := yamlnode.Parse("test.yaml", []byte(src), nil)
	m := f.Root().Map()
	top := Definition{App: "app", Registry: r, Tables: m.Get("tables"), Streams: m.Get("streams")}.Parse()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	return top
}

// avroOrders gives a registry that knows orders, and some of them.
func avroOrders(t testing.TB) (*shelf, func(user string, cents int) []byte) {
	t.Helper()
	r := newShelf()
	r.schemas[1] = format.Schema{Type: format.AvroSchema, Text: `{"type":"record","name":"Order","fields":[{"name":"user","type":"string"},{"name":"cents","type":"long"}]}`}
	codec, err := format.NewAvro(r, &format.Target{Subject: "orders-value"})
	if err != nil {
		t.Fatal(err)
	}
	return r, func(user string, cents int) []byte {
		raw, err := codec.Append(nil, map[string]any{"user": user, "cents": cents})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

const avroToAvro = `
streams:
  - name: orders
    from: {topic: orders, value: avro, on_error: POLICY}
    steps:
      - filter: value.cents > 0
      - sum: {store: spent, value: int(value.cents)}
      - map: '{"customer": key, "cents": value}'
      - to: {topic: spent, value: {format: avro, schema: testdata/schemas/spent.avsc, auto_register: true}}
`

func TestAvroTopics(t *testing.T) {
	r, order := avroOrders(t)
	a := newAppOf(t, parseWith(t, r, strings.Replace(avroToAvro, "POLICY", "fail", 1)))
	var last []*kgo.Record
	for _, cents := range []int{250, 0, 100} {
		out, err := a.feed(&kgo.Record{Topic: "orders", Key: []byte("ann"), Value: order("ann", cents)})
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > 0 {
			last = out
		}
	}
	_, value := a.top.Formats("orders")
	got, err := value.Codec.Decode(last[0].Value)
	if want := `map[cents:350 customer:ann note:<nil>]`; err != nil || describe(got) != "the object "+want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	schema, _ := os.ReadFile("testdata/schemas/spent.avsc")
	if r.schemas[2].Text != string(schema) {
		t.Errorf("the registry has %v", r.schemas)
	}
}

func TestProtobufTopics(t *testing.T) {
	r := newShelf()
	r.schemas[1] = format.Schema{Type: format.ProtobufSchema, Text: `syntax = "proto3"; message Order { string user = 1; int64 cents = 2; }`}
	top := parseWith(t, r, `
streams:
  - name: orders
    from: {topic: orders, key: string, value: protobuf}
    steps:
      - sum: {store: spent, value: int(value.cents)}
      - map: '{"customer": key, "cents": value}'
      - to: {topic: spent, value: {format: protobuf, schema: testdata/schemas/spent.proto}}
`)
	a := newAppOf(t, top)
	out, err := a.feed(&kgo.Record{Topic: "orders", Key: []byte("ann"), Value: []byte("\x00\x00\x00\x00\x01\x00\x0a\x03ann\x10\xfa\x01")})
	if err != nil {
		t.Fatal(err)
	}
	if want := "\x00\x00\x00\x00\x02\x00\x0a\x03ann\x10\xfa\x01"; string(out[0].Value) != want {
		t.Errorf("wrote %q, want %q", out[0].Value, want)
	}
}

// TestTrialSchemas holds that a trial can write what a source reads, if a schema is named for it.
func TestTrialSchemas(t *testing.T) {
	top := parseWith(t, new(format.Memory), `
streams:
  - name: orders
    from: {topic: orders, key: avro, value: {format: avro, schema: testdata/schemas/spent.avsc}}
    steps:
      - to: {topic: out, key: json, value: {format: avro, schema: testdata/schemas/spent.avsc}}
`)
	key, value := top.Formats("orders")
	order := map[string]any{"customer": "ann", "cents": 7, "note": nil}
	raw, err := value.Encode(order)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := value.Decode(raw); err != nil || !reflect.DeepEqual(v, order) {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := key.Encode("ann"); err == nil || !strings.Contains(err.Error(), "no schema is known to write it by") {
		t.Errorf("got %v", err)
	}
}

// TestWaitsForSchema holds that a record waits, under each policy, while its schema or that of its result is not known, and leaves no
// trace until it is done.
func TestWaitsForSchema(t *testing.T) {
	for _, policy := range []Policy{Stop, Skip, DeadLetter} {
		for _, known := range []bool{false, true} { // the input's schema
			r, order := avroOrders(t)
			a := newAppOf(t, parseWith(t, r, strings.Replace(avroToAvro, "POLICY", string(policy), 1)))
			if known {
				if _, err := a.feed(&kgo.Record{Topic: "orders", Key: []byte("ann"), Value: order("ann", 0)}); err != nil {
					t.Fatal(err)
				}
			}
			rec := &kgo.Record{Topic: "orders", Key: []byte("ann"), Value: order("ann", 250)}
			r.down = errors.New("connection refused")
			for range 2 {
				out, err := a.feed(rec)
				var waiting *RecordError
				if !errors.As(err, &waiting) || !waiting.Waits || len(out) > 0 {
					t.Fatalf("%s: got %v, %v; want that it waits", policy, out, err)
				}
				for _, words := range []string{"connection refused", "stream orders: record at orders[0]", "the record waits, it is not at fault"} {
					if !strings.Contains(err.Error(), words) {
						t.Errorf("%s: error %q does not say %q", policy, err, words)
					}
				}
			}
			if rows := a.stores["spent"].mapStore; len(rows) > 0 {
				t.Errorf("%s: the store has %v", policy, rows)
			}
			if c := a.procs[0].Counters; c.Skipped+c.DeadLettered+c.Out > 0 {
				t.Errorf("%s: %+v", policy, c)
			}
			r.down = nil
			if out, err := a.feed(rec); len(out) != 1 || out[0].Topic != "spent" || err != nil {
				t.Errorf("%s: after the outage %v, %v", policy, out, err)
			}
		}
	}
}

// TestBadSchemas holds that a record is to blame for a schema that is not there, and for a value that is not of the schema.
func TestBadSchemas(t *testing.T) {
	const src = `
streams:
  - name: orders
    from: {topic: orders, value: avro, on_error: POLICY}
    steps:
      - map: 'value.user == "odd" ? {"customer": 7} : {"customer": value.user, "cents": value.cents}'
      - to: {topic: spent, value: {format: avro, schema: testdata/schemas/spent.avsc}}
`
	r, order := avroOrders(t)
	for _, tt := range []struct {
		value []byte
		want  string
	}{
		{[]byte("\x00\x00\x00\x00\x09"), "value: schema 9: the schema registry has no such schema"},
		{[]byte("text"), "value: it does not begin with a zero byte and the id of a schema, as what is written with a schema registry does"},
		{order("odd", 1), "value for topic spent: not of schema 2: field customer: want string, got 7 (int)"},
	} {
		for _, policy := range []Policy{Stop, Skip, DeadLetter} {
			a := newAppOf(t, parseWith(t, r, strings.Replace(src, "POLICY", string(policy), 1)))
			out, err := a.feed(&kgo.Record{Topic: "orders", Value: tt.value})
			c := a.procs[0].Counters
			switch policy {
			case Stop:
				var bad *RecordError
				if !errors.As(err, &bad) || bad.Waits || bad.Err.Error() != tt.want {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			case Skip:
				if err != nil || c.Skipped != 1 || len(out) > 0 {
					t.Errorf("%s: got %v, %v, %+v", policy, out, err, c)
				}
			case DeadLetter:
				if err != nil || c.DeadLettered != 1 || len(out) != 1 || string(out[0].Value) != string(tt.value) || string(out[0].Headers[0].Value) != tt.want {
					t.Errorf("%s: got %v, %v, %+v", policy, out, err, c)
				}
			}
			delete(r.schemas, 2)
		}
	}
}

// TestGlobalAvro holds that a global table reads Avro keys and values: rows are found by what keys say, whatever the schema that they were
// written by.
func TestGlobalAvro(t *testing.T) {
	r, order := avroOrders(t)
	order("ann", 0) // its schema is the latest one now
	r.schemas[2] = format.Schema{Type: format.AvroSchema, Text: `{"type":"record","name":"Id","fields":[{"name":"user","type":"string"}]}`}
	keys, err := format.NewAvro(r, &format.Target{Subject: "orders-key"})
	if err != nil {
		t.Fatal(err)
	}
	a := newAppOf(t, parseWith(t, r, `
tables:
  - {name: orders, from: {topic: orders, key: avro, value: avro}, global: true}
streams:
  - name: in
    from: {topic: in, on_error: skip}
    steps: [join: {table: orders, key: '{"user": value}', type: left, value: 'other == nil ? -1 : other.cents'}, to: {topic: out, value: json}]
`))
	ann, err := keys.Append(nil, map[string]any{"user": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	look := func(want string) {
		t.Helper()
		out, err := a.feed(&kgo.Record{Topic: "in", Value: []byte("ann")})
		got := ""
		if len(out) == 1 {
			got = string(out[0].Value)
		}
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	look("-1")
	for _, step := range []struct {
		value     []byte
		bad, want string
	}{
		{order("ann", 7), "", "7"},
		{[]byte("text"), "begin with a zero byte", ""},
		{order("ann", 8), "", "8"},
		{nil, "", "-1"},
		{order("ann", 9), "", "9"},
	} {
		err := a.globals["orders"].Put(ann, step.value)
		if (err == nil) != (step.bad == "") || err != nil && !strings.Contains(err.Error(), step.bad) {
			t.Errorf("%q: %v, want %q", step.value, err, step.bad)
		}
		look(step.want)
	}
	if c := a.procs[0].Counters; c.Skipped != 1 {
		t.Errorf("%+v, want one skipped, that has met the bad row", c)
	}
	// Without the registry nothing is bad, and nothing changes.
	r.schemas[5], r.down = r.schemas[1], errors.New("no registry")
	unknown := append([]byte{0, 0, 0, 0, 5}, order("ann", 10)[5:]...)
	var away *format.Unavailable
	if err := a.globals["orders"].Put(ann, unknown); !errors.As(err, &away) {
		t.Errorf("got %v", err)
	}
	look("9")
	r.down = nil
	if err := a.globals["orders"].Put(ann, unknown); err != nil {
		t.Error(err)
	}
	look("10")
}
