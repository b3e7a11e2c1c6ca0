package topology

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// Format is how a key or a value is written in a topic or a store.
type Format uint8

// The formats. Int and Float are the 8 bytes, big-endian, that Kafka's LongSerializer and DoubleSerializer write.
const (
	String Format = iota // UTF-8; not checked, any bytes pass
	Bytes
	Int   // 64 bits, signed
	Float // 64 bits, IEEE 754
	JSON
)

var formatNames = []string{"string", "bytes", "int", "float", "json"}

func (f Format) String() string { return formatNames[f] }

// fit says whether something of format from can be written as format to.
type fit uint8

const (
	fits    fit = iota // always
	mayFit             // json: known record by record
	misfits            // never
)

func fitOf(from, to Format) fit {
	switch {
	case from == to,
		from == String && to == Bytes, from == Bytes && to == String,
		from == Int && to == Float,
		to == JSON && from != Bytes:
		return fits
	case from == JSON && to != Bytes:
		return mayFit
	default:
		return misfits
	}
}

// datum is a key or a value on its way through a chain. Which format it has is known where the chain is
// built; it is decoded and encoded no more often than the steps need.
//
//	String, Bytes: raw
//	Int, Float:    bits always; raw if encoded
//	JSON:          v if decoded; raw if encoded; fields if it is an object whose fields are known one by one; if none
//	               of it, v is a Go value that a function gave
//
// The fields are valid as long as the message is processed.
type datum struct {
	raw     []byte
	v       any
	fields  *fields
	bits    uint64
	null    bool
	encoded bool
	decoded bool
}

func nullDatum() datum           { return datum{null: true} }
func rawDatum(b []byte) datum    { return datum{raw: b, encoded: true} }
func intDatum(n int64) datum     { return datum{bits: uint64(n)} }
func floatDatum(f float64) datum { return datum{bits: math.Float64bits(f)} }
func jsonDatum(v any) datum      { return datum{v: v, decoded: true} }
func textDatum(s string) datum   { return rawDatum(textBytes(s)) }
func (d *datum) int() int64      { return int64(d.bits) }
func (d *datum) float() float64  { return math.Float64frombits(d.bits) }
func (d *datum) text() string    { return bytesText(d.raw) }

// textBytes and bytesText share the memory: records' keys and values are never written to once they exist. An empty
// text must not become nil, which is null.
func textBytes(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

func bytesText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decodeDatum reads an encoded key or value. Nil is null, and so is the JSON text null. JSON is checked, and decoded
// only if deep.
func decodeDatum(f Format, raw []byte, deep bool) (datum, error) {
	if raw == nil {
		return nullDatum(), nil
	}
	d := rawDatum(raw)
	switch f {
	case Int, Float:
		if len(raw) != 8 {
			return d, fmt.Errorf("format %s has 8 bytes, got %d", f, len(raw))
		}
		d.bits = binary.BigEndian.Uint64(raw)
	case JSON:
		switch {
		case isJSONNull(raw):
			return nullDatum(), nil
		case !deep:
			return d, checkJSON(raw)
		}
		v, err := decodeJSON(raw)
		if err != nil {
			return d, err
		}
		d.v, d.decoded = v, true
	default:
	}
	return d, nil
}

func isJSONNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

// encode makes d.raw hold the encoded form; nil for null.
func (d *datum) encode(f Format, a *slabs) error {
	if d.encoded || d.null {
		return nil
	}
	switch f {
	case Int, Float:
		d.raw = a.bytes(8)
		binary.BigEndian.PutUint64(d.raw, d.bits)
	case JSON:
		var err error
		if a.scratch, err = d.appendJSON(a.scratch[:0]); err != nil {
			return err
		}
		d.raw = a.copy(a.scratch)
	default:
	}
	d.encoded = true
	return nil
}

// encodeAlone is encode with memory of its own.
func (d *datum) encodeAlone(f Format) (err error) {
	switch {
	case d.encoded || d.null:
	case f == JSON:
		if d.raw, err = d.appendJSON(nil); err != nil {
			return err
		}
	default:
		d.raw = binary.BigEndian.AppendUint64(nil, d.bits)
	}
	d.encoded = true
	return nil
}

// appendJSON writes what is not encoded.
func (d *datum) appendJSON(b []byte) ([]byte, error) {
	var err error
	if d.fields != nil {
		b, err = d.fields.append(b)
	} else {
		b, err = appendJSON(b, d.v, 0)
	}
	if err != nil {
		err = fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return b, err
}

// written returns d, which has format from, encoded as format to. It remembers the encoding where they are the same.
func (d *datum) written(from, to Format, a *slabs) ([]byte, error) {
	if from != to {
		other := *d
		if err := other.convert(from, to); err != nil {
			return nil, err
		}
		d = &other
	}
	if err := d.encode(to, a); err != nil {
		return nil, err
	}
	return d.raw, nil
}

// boxed gives d to an expression; null is nil.
func (d *datum) boxed(f Format) (any, error) {
	if d.null {
		return nil, nil
	}
	switch f {
	case String:
		return d.text(), nil
	case Bytes:
		return d.raw, nil
	case Int:
		return int(d.int()), nil
	case Float:
		return d.float(), nil
	default:
		return d.object()
	}
}

// object decodes JSON.
func (d *datum) object() (v any, err error) {
	if d.decoded {
		return d.v, nil
	}
	if d.fields != nil {
		v, err = d.fields.boxed()
	} else if err = d.encodeAlone(JSON); err == nil {
		v, err = decodeJSON(d.raw)
	}
	if err != nil {
		return nil, err
	}
	d.v, d.decoded = v, true
	return v, nil
}

// field returns a field of a JSON object that is known to be one, and null if there is no such field.
func (d *datum) field(name string) (_ scalar, ok bool) {
	if d.fields != nil {
		v, err := d.fields.get(name)
		return v, err == nil
	}
	if m, ok := d.v.(map[string]any); ok && d.decoded {
		return scalarOf(m[name]), true
	}
	return scalar{}, false
}

// unbox takes an expression's result as format f.
func unbox(v any, f Format) (datum, error) {
	if v == nil {
		return nullDatum(), nil
	}
	if d, ok := v.(*datum); ok { // of a function, whose format was checked
		return *d, nil
	}
	if f == JSON {
		return jsonDatum(v), nil
	}
	switch v := v.(type) {
	case string:
		if f == String || f == Bytes {
			return textDatum(v), nil
		}
	case []byte:
		if f == String || f == Bytes {
			return rawDatum(v), nil
		}
	case float64:
		if f == Float {
			return floatDatum(v), nil
		}
	case float32:
		if f == Float {
			return floatDatum(float64(v)), nil
		}
	default:
		if n, ok := format.Integer(v); ok && f == Int {
			return intDatum(n), nil
		} else if ok && f == Float {
			return floatDatum(float64(n)), nil
		}
	}
	return datum{}, fmt.Errorf("want %s, got %s", f, describe(v))
}

// describe names a value in an error, short enough for a log line.
func describe(v any) string { return format.Describe(v) }

// convert changes d from one format to another; fitOf(from, to) must not be misfits.
func (d *datum) convert(from, to Format) error {
	if from == to || d.null {
		return nil
	}
	switch {
	case to == Float && from == Int:
		*d = floatDatum(float64(d.int()))
	case to == JSON || from == JSON:
		v, err := d.boxed(from)
		if err != nil {
			return err
		}
		*d, err = unbox(v, to)
		return err
	}
	return nil // string and bytes look alike
}
