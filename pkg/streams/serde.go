package streams

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Serde reads and writes keys or values of a Go type. A null is the zero value of the type, see Record.NullKey and
// Record.NullValue.
type Serde[T any] struct {
	format topology.Format                    // of steps
	named  map[string]any                     // of topics, if that is another one
	read   func(d *topology.Datum) (T, error) // d is not null
	write  func(v T, d *topology.Datum) error
	// key is write for keys, where equal ones must have equal bytes; nil: write does.
	key func(v T, d *topology.Datum) error
}

// String is text, as it is: UTF-8 is not checked.
var String = Serde[string]{
	format: topology.String,
	read:   func(d *topology.Datum) (string, error) { return d.Text(), nil },
	write:  func(v string, d *topology.Datum) error { d.SetText(v); return nil },
}

// Bytes are as they are. They are not to be changed; nil is null.
var Bytes = Serde[[]byte]{
	format: topology.Bytes,
	read:   func(d *topology.Datum) ([]byte, error) { return d.Bytes(topology.Bytes) },
	write:  func(v []byte, d *topology.Datum) error { d.SetBytes(v); return nil },
}

// Int is a whole number: 8 bytes, big-endian.
var Int = Serde[int64]{
	format: topology.Int,
	read:   func(d *topology.Datum) (int64, error) { return d.Int(), nil },
	write:  func(v int64, d *topology.Datum) error { d.SetInt(v); return nil },
}

// Float is a number: 8 bytes, big-endian, as IEEE 754 has it.
var Float = Serde[float64]{
	format: topology.Float,
	read:   func(d *topology.Datum) (float64, error) { return d.Float(), nil },
	write:  func(v float64, d *topology.Datum) error { d.SetFloat(v); return nil },
}

// JSON reads and writes a Go type as encoding/json does, without escapes for HTML. Keys have the fields of objects in order of
// name, so that their bytes are those that topologies in YAML give. A nil pointer, map or slice is null.
//
// A value that was read or written is handed on as it is, and written at the end: it must not be changed after that.
func JSON[T any]() Serde[T] {
	nilable := false
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		nilable = true
	default:
	}
	null := func(v *T) bool { return nilable && reflect.ValueOf(v).Elem().IsNil() }
	return Serde[T]{
		format: topology.JSON,
		read: func(d *topology.Datum) (v T, err error) {
			if kept, ok := d.Object().(T); ok {
				return kept, nil
			}
			raw, err := d.Bytes(topology.JSON)
			if err != nil {
				return v, err
			}
			if err := json.Unmarshal(raw, &v); err != nil {
				return v, fmt.Errorf("is no %T: %w", v, err)
			}
			d.Keep(v)
			return v, nil
		},
		write: func(v T, d *topology.Datum) error {
			if !null(&v) {
				d.SetObject(v)
			}
			return nil
		},
		key: func(v T, d *topology.Datum) error {
			if null(&v) {
				return nil
			}
			raw, err := topology.CanonicalJSON(v)
			if err == nil {
				d.SetBytes(raw)
			}
			return err
		},
	}
}

// Custom reads and writes a Go type as two functions do. In topics and stores they are bytes. Encode gives nil for null; equal
// keys must get equal bytes.
func Custom[T any](decode func([]byte) (T, error), encode func(T) ([]byte, error)) Serde[T] {
	return Serde[T]{
		format: topology.Bytes,
		read: func(d *topology.Datum) (v T, err error) {
			raw, err := d.Bytes(topology.Bytes)
			if err != nil {
				return v, err
			}
			return decode(raw)
		},
		write: func(v T, d *topology.Datum) error {
			raw, err := encode(v)
			if err == nil {
				d.SetBytes(raw)
			}
			return err
		},
	}
}

// Optional is a serde in which nil is null, for types that have no value for it.
func Optional[T any](s Serde[T]) Serde[*T] {
	o := Serde[*T]{
		format: s.format,
		read: func(d *topology.Datum) (*T, error) {
			v, err := s.read(d)
			return &v, err
		},
		write: optional(s.write),
	}
	if s.key != nil {
		o.key = optional(s.key)
	}
	return o
}

func optional[T any](write func(T, *topology.Datum) error) func(*T, *topology.Datum) error {
	return func(v *T, d *topology.Datum) error {
		if v == nil {
			return nil
		}
		return write(*v, d)
	}
}

// decode is read for a datum that may be null.
func (s *Serde[T]) decode(d *topology.Datum, what string) (v T, err error) {
	if d.Null() {
		return v, nil
	}
	if v, err = s.read(d); err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return v, err
}

// asKey is the serde for keys.
func (s Serde[T]) asKey() Serde[T] {
	if s.key != nil {
		s.write = s.key
	}
	return s
}

// Decode reads what is written in a topic; nil is the zero value.
func (s Serde[T]) Decode(raw []byte) (T, error) {
	var zero T
	if raw == nil {
		return zero, nil
	}
	d, err := topology.DecodeDatum(s.format, raw)
	if err != nil {
		return zero, err
	}
	return s.decode(&d, "value")
}

// Encode writes a value as it is in topics; nil is null.
func (s Serde[T]) Encode(v T) ([]byte, error) {
	var d topology.Datum
	d.SetNull()
	if err := s.write(v, &d); err != nil || d.Null() {
		return nil, err
	}
	return d.Bytes(s.format)
}

// EncodeKey is Encode for keys.
func (s Serde[T]) EncodeKey(v T) ([]byte, error) { return s.asKey().Encode(v) }
