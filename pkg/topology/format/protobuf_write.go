package format

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fillMessage sets a message to v. A field of an object that is null is left absent.
func fillMessage(m protoreflect.Message, v any) error {
	desc := m.Descriptor()
	switch name := desc.FullName(); {
	case name == timestampType:
		return fillTimestamp(m, v)
	case name == durationType, name == maskType, name == structType, name == valueType, name == listType:
		return fillFromJSON(m, v)
	case isWrapper(name):
		f := desc.Fields().ByNumber(1)
		one, err := writeScalar(f, v)
		if err == nil {
			m.Set(f, one)
		}
		return err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return mismatch("message "+string(desc.FullName()), v)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		f := desc.Fields().ByName(protoreflect.Name(name))
		if f == nil {
			return inField(name, fmt.Errorf("message %s has no such field", desc.FullName()))
		}
		if object[name] == nil {
			continue
		}
		if group := f.ContainingOneof(); group != nil && m.WhichOneof(group) != nil {
			return inField(name, fmt.Errorf("%s is there too, and oneof %s takes one of them", m.WhichOneof(group).Name(), group.Name()))
		}
		if err := fillField(m, f, object[name]); err != nil {
			return inField(name, err)
		}
	}
	for fields, i := desc.Fields(), 0; i < fields.Len(); i++ {
		if f := fields.Get(i); f.Cardinality() == protoreflect.Required && !m.Has(f) {
			return inField(string(f.Name()), errors.New("it is missing, and the schema requires it"))
		}
	}
	return nil
}

func fillField(m protoreflect.Message, f protoreflect.FieldDescriptor, v any) error {
	switch {
	case f.IsMap():
		object, ok := v.(map[string]any)
		if !ok {
			return mismatch("a map", v)
		}
		return fillMap(m.Mutable(f).Map(), f, object)
	case f.IsList():
		list, ok := v.([]any)
		if !ok {
			return mismatch("a list", v)
		}
		out := m.Mutable(f).List()
		for i, item := range list {
			one, err := writeValue(f, out.NewElement, item)
			if err != nil {
				return inElement(i, err)
			}
			out.Append(one)
		}
		return nil
	default:
		one, err := writeValue(f, func() protoreflect.Value { return m.NewField(f) }, v)
		if err == nil {
			m.Set(f, one)
		}
		return err
	}
}

func fillMap(out protoreflect.Map, f protoreflect.FieldDescriptor, object map[string]any) error {
	for name, v := range object {
		key, err := mapKey(f.MapKey(), name)
		if err != nil {
			return inField(name, err)
		}
		one, err := writeValue(f.MapValue(), out.NewValue, v)
		if err != nil {
			return inField(name, err)
		}
		out.Set(key, one)
	}
	return nil
}

// mapKey reads a key as it is read from a map: as text.
func mapKey(f protoreflect.FieldDescriptor, text string) (protoreflect.MapKey, error) {
	var v any = text
	var err error
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
	case protoreflect.BoolKind:
		v, err = strconv.ParseBool(text)
	default:
		v, err = strconv.Atoi(text)
	}
	if err != nil {
		return protoreflect.MapKey{}, mismatch("a key of type "+f.Kind().String(), text)
	}
	key, err := writeScalar(f, v)
	if err != nil {
		return protoreflect.MapKey{}, err
	}
	return key.MapKey(), nil
}

// writeValue makes an element or a field that is no list and no map; fresh is an empty one.
func writeValue(f protoreflect.FieldDescriptor, fresh func() protoreflect.Value, v any) (protoreflect.Value, error) {
	if f.Message() == nil {
		return writeScalar(f, v)
	}
	one := fresh()
	return one, fillMessage(one.Message(), v)
}

func writeScalar(f protoreflect.FieldDescriptor, v any) (protoreflect.Value, error) {
	none, kind := protoreflect.Value{}, f.Kind()
	switch kind {
	case protoreflect.BoolKind:
		if b, ok := v.(bool); ok {
			return protoreflect.ValueOfBool(b), nil
		}
	case protoreflect.StringKind:
		if s, ok := v.(string); ok && utf8.ValidString(s) {
			return protoreflect.ValueOfString(s), nil
		} else if ok {
			return none, errors.New("a string must be UTF-8")
		}
	case protoreflect.BytesKind:
		return writeBytes(v)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		f, ok := real(v)
		switch {
		case !ok:
		case kind == protoreflect.DoubleKind:
			return protoreflect.ValueOfFloat64(f), nil
		case math.Abs(f) > math.MaxFloat32 && !math.IsInf(f, 0):
			return none, fmt.Errorf("%v does not fit a float of 32 bits", f)
		default:
			return protoreflect.ValueOfFloat32(float32(f)), nil
		}
	case protoreflect.EnumKind:
		return writeEnum(f.Enum(), v)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return writeUnsigned(kind, v)
	default:
		n, ok := whole(v)
		switch {
		case !ok:
		case kind == protoreflect.Int64Kind || kind == protoreflect.Sint64Kind || kind == protoreflect.Sfixed64Kind:
			return protoreflect.ValueOfInt64(n), nil
		case n != int64(int32(n)):
			return none, fmt.Errorf("%d does not fit %s", n, kind)
		default:
			return protoreflect.ValueOfInt32(int32(n)), nil
		}
	}
	return none, mismatch(kind.String(), v)
}

func writeBytes(v any) (protoreflect.Value, error) {
	switch v := v.(type) {
	case []byte:
		return protoreflect.ValueOfBytes(v), nil
	case string:
		if data, err := base64.StdEncoding.DecodeString(v); err == nil {
			return protoreflect.ValueOfBytes(data), nil
		}
	}
	return protoreflect.Value{}, mismatch("bytes, as base64", v)
}

func writeUnsigned(kind protoreflect.Kind, v any) (protoreflect.Value, error) {
	none := protoreflect.Value{}
	var n uint64
	if signed, ok := whole(v); ok && signed >= 0 {
		n = uint64(signed)
	} else if ok {
		return none, fmt.Errorf("%d does not fit %s", signed, kind)
	} else if text, isText := v.(string); !isText {
		return none, mismatch(kind.String(), v)
	} else if parsed, err := strconv.ParseUint(text, 10, 64); err != nil {
		return none, mismatch(kind.String(), v)
	} else {
		n = parsed
	}
	switch {
	case kind == protoreflect.Uint64Kind || kind == protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n), nil
	case n > math.MaxUint32:
		return none, fmt.Errorf("%d does not fit %s", n, kind)
	default:
		return protoreflect.ValueOfUint32(uint32(n)), nil
	}
}

func writeEnum(of protoreflect.EnumDescriptor, v any) (protoreflect.Value, error) {
	switch v := v.(type) {
	case string:
		if symbol := of.Values().ByName(protoreflect.Name(v)); symbol != nil {
			return protoreflect.ValueOfEnum(symbol.Number()), nil
		}
	default:
		if n, ok := whole(v); ok && n == int64(int32(n)) {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), nil
		}
	}
	return protoreflect.Value{}, mismatch("a symbol of enum "+string(of.FullName()), v)
}

func fillTimestamp(m protoreflect.Message, v any) error {
	text, ok := v.(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if !ok || err != nil || at.Unix() < firstSecond || at.Unix() > lastSecond {
		return mismatch("a timestamp as text, e.g. 2024-01-31T12:00:00Z", v)
	}
	fields := m.Descriptor().Fields()
	m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(at.Unix()))
	m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(int32(at.Nanosecond())))
	return nil
}

// fillFromJSON sets a message as Protobuf's own JSON mapping does.
func fillFromJSON(m protoreflect.Message, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = protojson.Unmarshal(text, m.Interface())
	}
	if err != nil {
		return mismatch("what "+string(m.Descriptor().FullName())+" is in JSON", v)
	}
	return nil
}
