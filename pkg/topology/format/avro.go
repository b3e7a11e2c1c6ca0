package format

import (
	"errors"
	"fmt"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
)

// Avro reads and writes Avro data in Confluent's framing. Each record is read by the schema that it was written by.
type Avro struct{ schemas[*avroSchema] }

// NewAvro returns a codec that writes by the target's schema; one with no target does not write. A schema that is no Avro is an
// error.
func NewAvro(r Registry, t *Target) (*Avro, error) {
	if t != nil && t.Schema != "" {
		if _, err := parseAvro(Schema{Type: AvroSchema, Text: t.Schema}, t); err != nil {
			return nil, err
		}
	}
	return &Avro{schemas[*avroSchema]{registry: r, typ: AvroSchema, parse: parseAvro, target: t}}, nil
}

func (a *Avro) String() string {
	if a.target == nil || a.target.Trial {
		return "avro"
	}
	return "avro, " + a.target.String()
}

// avroSchema is a schema compiled for both ways.
type avroSchema struct {
	reads  *avro.Schema
	writes *avroType
}

func parseAvro(s Schema, _ *Target) (*avroSchema, error) {
	var cache avro.SchemaCache
	opts := append(fromAvro, avro.WithLaxNames(nil))
	var nodes []*avro.SchemaNode
	for _, r := range s.References {
		referred, err := cache.Parse(r.Text, opts...)
		if err != nil {
			return nil, fmt.Errorf("no valid Avro schema: it refers to %s: %w", r.Name, err)
		}
		nodes = append(nodes, referred.Root())
	}
	parsed, err := cache.Parse(s.Text, opts...)
	if err != nil {
		return nil, fmt.Errorf("no valid Avro schema: %w", err)
	}
	writes, err := compileAvro(append(nodes, parsed.Root()))
	if err != nil {
		return nil, fmt.Errorf("no valid Avro schema: %w", err)
	}
	return &avroSchema{reads: parsed, writes: writes}, nil
}

var header sr.ConfluentHeader

// errFrame says that bytes have no schema's id in front.
var errFrame = errors.New("it does not begin with a zero byte and the id of a schema, as what is written with a schema registry does")

// errReadOnly is met by trials only.
var errReadOnly = errors.New("no schema is known to write it by: name a file, e.g. value: {format: avro, schema: order.avsc}")

// Decode implements Codec.
func (a *Avro) Decode(raw []byte) (any, error) {
	id, data, err := header.DecodeID(raw)
	if err != nil {
		return nil, errFrame
	}
	s, err := a.byID(id)
	if err != nil {
		return nil, err
	}
	var v any
	rest, err := s.reads.Decode(data, &v, avro.AliasInput())
	switch {
	case err != nil:
		return nil, fmt.Errorf("not valid Avro of schema %d: %w", id, err)
	case len(rest) > 0:
		return nil, fmt.Errorf("not valid Avro of schema %d: %d bytes are left over", id, len(rest))
	}
	return v, nil
}

// Append implements Codec.
func (a *Avro) Append(b []byte, v any) ([]byte, error) {
	if a.target == nil {
		return b, errReadOnly
	}
	w, err := a.forWriting()
	if err != nil {
		return b, err
	}
	if b, err = header.AppendEncode(b, w.id, nil); err != nil {
		return b, err
	}
	if b, err = w.schema.writes.append(b, v); err != nil {
		return b, fmt.Errorf("not of schema %d: %w", w.id, err)
	}
	return b, nil
}
