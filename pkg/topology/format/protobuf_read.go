package format

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Well-known types that are more than their fields.
const (
	timestampType = protoreflect.FullName("google.protobuf.Timestamp")
	durationType  = protoreflect.FullName("google.protobuf.Duration")
	maskType      = protoreflect.FullName("google.protobuf.FieldMask")
	structType    = protoreflect.FullName("google.protobuf.Struct")
	valueType     = protoreflect.FullName("google.protobuf.Value")
	listType      = protoreflect.FullName("google.protobuf.ListValue")
)

// isWrapper reports whether a type is that of a scalar that can be absent.
func isWrapper(name protoreflect.FullName) bool {
	switch name {
	case "google.protobuf.DoubleValue", "google.protobuf.FloatValue", "google.protobuf.Int64Value", "google.protobuf.UInt64Value",
		"google.protobuf.Int32Value", "google.protobuf.UInt32Value", "google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue":
		return true
	default:
		return false
	}
}

// readMessage gives an object with all fields, those that are absent as null.
func readMessage(m protoreflect.Message) (any, error) {
	desc := m.Descriptor()
	switch name := desc.FullName(); {
	case name == timestampType:
		return readTimestamp(m)
	case name == durationType, name == maskType, name == structType, name == valueType, name == listType:
		return readAsJSON(m)
	case isWrapper(name):
		f := desc.Fields().ByNumber(1)
		return readScalar(f, m.Get(f)), nil
	}
	fields := desc.Fields()
	out := make(map[string]any, fields.Len())
	for i := range fields.Len() {
		f := fields.Get(i)
		name := string(f.Name())
		if f.HasPresence() && !m.Has(f) {
			out[name] = nil
			continue
		}
		v, err := readField(f, m.Get(f))
		if err != nil {
			return nil, inField(name, err)
		}
		out[name] = v
	}
	return out, nil
}

func readField(f protoreflect.FieldDescriptor, v protoreflect.Value) (any, error) {
	switch {
	case f.IsMap():
		return readMap(f, v.Map())
	case f.IsList():
		list := v.List()
		out := make([]any, list.Len())
		var err error
		for i := range out {
			if out[i], err = readValue(f, list.Get(i)); err != nil {
				return nil, inElement(i, err)
			}
		}
		return out, nil
	default:
		return readValue(f, v)
	}
}

func readMap(f protoreflect.FieldDescriptor, m protoreflect.Map) (any, error) {
	out := make(map[string]any, m.Len())
	var err error
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		if out[key.String()], err = readValue(f.MapValue(), v); err != nil {
			err = inField(key.String(), err)
		}
		return err == nil
	})
	return out, err
}

func readValue(f protoreflect.FieldDescriptor, v protoreflect.Value) (any, error) {
	if f.Message() != nil {
		return readMessage(v.Message())
	}
	return readScalar(f, v), nil
}

func readScalar(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return v.Bool()
	case protoreflect.StringKind:
		return v.String()
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return v.Float()
	case protoreflect.EnumKind:
		if symbol := f.Enum().Values().ByNumber(v.Enum()); symbol != nil {
			return string(symbol.Name())
		}
		return int(v.Enum())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		if n := v.Uint(); n > math.MaxInt64 {
			return strconv.FormatUint(n, 10)
		}
		return int(v.Uint())
	default:
		return int(v.Int())
	}
}

// The years that a timestamp may have are 1 to 9999.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

func readTimestamp(m protoreflect.Message) (any, error) {
	fields := m.Descriptor().Fields()
	seconds, nanos := m.Get(fields.ByNumber(1)).Int(), m.Get(fields.ByNumber(2)).Int()
	if seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos >= int64(time.Second) {
		return nil, errors.New("a timestamp out of range")
	}
	return time.Unix(seconds, nanos).UTC().Format(time.RFC3339Nano), nil
}

// readAsJSON gives what Protobuf's own JSON mapping makes of a message.
func readAsJSON(m protoreflect.Message) (any, error) {
	text, err := protojson.Marshal(m.Interface())
	if err != nil {
		return nil, errors.New(plain(err))
	}
	var v any
	err = json.Unmarshal(text, &v)
	return v, err
}
