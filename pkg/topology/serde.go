package topology

import "github.com/streamworker/streamworker/pkg/topology/format"

// Serde is how keys or values stand in a topic: in a format that the steps know, or in one that a codec reads and
// writes. Steps see what a codec gives as they see JSON; in stores and repartition topics it is JSON.
type Serde struct {
	Format Format
	Codec  format.Codec // nil: the bytes are those of Format
}

func (s Serde) String() string {
	if s.Codec != nil {
		return s.Codec.String()
	}
	return s.Format.String()
}

// read decodes the bytes of a topic; JSON without a codec only if deep.
func (s *Serde) read(raw []byte, deep bool) (datum, error) {
	if s.Codec == nil || raw == nil {
		return decodeDatum(s.Format, raw, deep)
	}
	v, err := s.Codec.Decode(raw)
	if err != nil {
		return datum{}, err
	}
	if v == nil {
		return nullDatum(), nil
	}
	return jsonDatum(v), nil
}

// write encodes d, which has format from, for a topic; nil for null.
func (s *Serde) write(d *datum, from Format, a *slabs) ([]byte, error) {
	if s.Codec == nil || d.null {
		return d.written(from, s.Format, a)
	}
	v, err := d.boxed(from)
	if err != nil {
		return nil, err
	}
	if a.scratch, err = s.Codec.Append(a.scratch[:0], v); err != nil {
		return nil, err
	}
	if len(a.scratch) == 0 {
		return noValue, nil // nil would be null
	}
	return a.copy(a.scratch), nil
}

// Encode writes a value as Format.Encode does, and Decode reads one as Format.Decode does.
func (s Serde) Encode(v any) ([]byte, error) {
	if s.Codec == nil || v == nil {
		return s.Format.Encode(v)
	}
	return s.Codec.Append([]byte{}, v)
}

// Decode is the opposite of Encode.
func (s Serde) Decode(raw []byte) (any, error) {
	if s.Codec == nil || raw == nil {
		return s.Format.Decode(raw)
	}
	return s.Codec.Decode(raw)
}

// fitOf says whether something of format from can be written.
func (s Serde) fitOf(from Format) fit {
	switch s.Codec.(type) {
	case nil:
		return fitOf(from, s.Format)
	case *format.CSV, *format.Protobuf:
		if from != JSON {
			return misfits // it is made of objects
		}
	}
	return mayFit
}

// waits reports whether a record may have to wait until a schema can be asked for.
func (s Serde) waits() bool {
	switch s.Codec.(type) {
	case nil, *format.CSV:
		return false
	default:
		return true
	}
}

func (s *segment) waits() bool {
	for _, one := range s.steps {
		if sink, ok := one.(*sinkStep); ok && (sink.Key.waits() || sink.Value.waits()) {
			return true
		}
	}
	return s.key.waits() || s.value.waits()
}

// mayFail reports whether a datum of format from may turn out not to be writable.
func (s Serde) mayFail(from Format) bool { return s.Codec != nil || mayFail(from, s.Format) }
