package topology

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// BenchmarkFormats reads a record, looks at its value, and writes it, in each format. One operation is one record.
func BenchmarkFormats(b *testing.B) {
	const (
		avro  = `{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"user","type":"string"},{"name":"amount","type":"double"},{"name":"paid","type":"boolean"}]}`
		proto = `syntax = "proto3"; message R { int64 id = 1; string user = 2; double amount = 3; bool paid = 4; }`
		csv   = `{format: csv, columns: {id: int, user: string, amount: float, paid: bool}}`
	)
	r := newShelf()
	r.schemas[1] = format.Schema{Type: format.AvroSchema, Text: avro}
	r.schemas[2] = format.Schema{Type: format.ProtobufSchema, Text: proto}
	object := func(i int) map[string]any {
		return map[string]any{"id": i, "user": fmt.Sprintf("user-%d", i%50), "amount": float64(i) + 0.5, "paid": true}
	}
	framed := func(id byte, codec format.Codec) func(int) []byte {
		return func(i int) []byte {
			raw, err := codec.Append(nil, object(i))
			if err != nil {
				b.Fatal(err)
			}
			raw[4] = id
			return raw
		}
	}
	avroCodec, err := format.NewAvro(r, &format.Target{Subject: "s", Schema: avro})
	if err != nil {
		b.Fatal(err)
	}
	protoCodec, err := format.NewProtobuf(r, &format.Target{Subject: "s", Schema: proto})
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range []struct {
		name, from, look, to string
		record               func(i int) []byte
	}{
		{"string", "string", `value + "!"`, "string", func(i int) []byte { return fmt.Appendf(nil, "user-%d", i) }},
		{"bytes", "bytes", "value", "bytes", func(i int) []byte { return fmt.Appendf(nil, "user-%d", i) }},
		{"int", "int", "value + 1", "int", func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }},
		{"float", "float", "value + 1", "float", func(i int) []byte { return binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(i))) }},
		{"json", "json", "", "json", func(i int) []byte {
			raw, err := JSON.Encode(object(i))
			if err != nil {
				b.Fatal(err)
			}
			return raw
		}},
		{"csv", csv, "", csv, func(i int) []byte { return fmt.Appendf(nil, "%d,user-%d,%d.5,true", i, i%50, i) }},
		{"avro", "avro", "", "{format: avro, subject: s}", framed(1, avroCodec)},
		{"protobuf", "protobuf", "", "{format: protobuf, subject: s}", framed(2, protoCodec)},
	} {
		look := f.look
		if look == "" {
			look = `{"id": value.id, "user": value.user, "amount": value.amount, "paid": value.paid}`
		}
		b.Run(f.name, func(b *testing.B) {
			latest := &latestShelf{shelf: r, id: map[string]int{"avro": 1, "protobuf": 2}[f.name]}
			src := fmt.Sprintf("streams:\n  - {name: s, from: {topic: in, value: %s}, steps: [map: %q, to: {topic: out, value: %s}]}", f.from, look, f.to)
			benchTopology(b, parseWith(b, latest, src), 0, func(i int) *kgo.Record { return &kgo.Record{Value: f.record(i)} })
		})
	}
}

// latestShelf has one schema as the latest of all subjects.
type latestShelf struct {
	*shelf
	id int
}

func (s *latestShelf) Latest(string) (int, format.Schema, error) {
	found, err := s.Schema(s.id)
	return s.id, found, err
}
