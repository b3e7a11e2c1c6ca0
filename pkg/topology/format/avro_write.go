package format

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// append writes v in Avro's binary encoding.
func (t *avroType) append(b []byte, v any) ([]byte, error) {
	switch t.kind {
	case "null":
		if v == nil {
			return b, nil
		}
	case "boolean":
		if v, ok := v.(bool); ok {
			if v {
				return append(b, 1), nil
			}
			return append(b, 0), nil
		}
	case "int", "long":
		return t.appendWhole(b, v)
	case "float", "double":
		return t.appendReal(b, v)
	case "string":
		if s, ok := v.(string); ok {
			return append(binary.AppendVarint(b, int64(len(s))), s...), nil
		}
	case "bytes", "fixed":
		data, err := t.bytes(v)
		if err != nil {
			return b, err
		}
		if t.kind == "bytes" {
			b = binary.AppendVarint(b, int64(len(data)))
		}
		return append(b, data...), nil
	case "enum":
		if s, ok := v.(string); ok {
			if i, ok := t.symbols[s]; ok {
				return binary.AppendVarint(b, int64(i)), nil
			}
		}
	case "array":
		if list, ok := v.([]any); ok {
			return t.appendList(b, list)
		}
	case "map":
		if object, ok := v.(map[string]any); ok {
			return t.appendMap(b, object)
		}
	case "record":
		if object, ok := v.(map[string]any); ok {
			return t.appendRecord(b, object)
		}
	case "union":
		return t.appendUnion(b, v)
	}
	return b, mismatch(t.String(), v)
}

func (t *avroType) appendWhole(b []byte, v any) ([]byte, error) {
	n, ok := whole(v)
	if !ok {
		if n, ok = t.timeOf(v); !ok {
			return b, mismatch(t.String(), v)
		}
	}
	if t.kind == "int" && n != int64(int32(n)) {
		return b, fmt.Errorf("%d does not fit an int of 32 bits", n)
	}
	return binary.AppendVarint(b, n), nil
}

// timeOf reads the text of a date or a timestamp.
func (t *avroType) timeOf(v any) (int64, bool) {
	text, ok := v.(string)
	if !ok {
		return 0, false
	}
	if t.logical == "date" {
		at, err := time.Parse(time.DateOnly, text)
		return at.Unix() / int64(day/time.Second), err == nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	switch strings.TrimPrefix(t.logical, "local-") {
	case "timestamp-millis":
		return at.UnixMilli(), true
	case "timestamp-micros":
		return at.UnixMicro(), true
	case "timestamp-nanos":
		return at.UnixNano(), at.Equal(time.Unix(0, at.UnixNano())) // or it is out of range
	default:
		return 0, false
	}
}

func (t *avroType) appendReal(b []byte, v any) ([]byte, error) {
	f, ok := real(v)
	switch {
	case !ok:
		return b, mismatch(t.String(), v)
	case t.kind == "double":
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(f)), nil
	case math.Abs(f) > math.MaxFloat32 && !math.IsInf(f, 0):
		return b, fmt.Errorf("%v does not fit a float of 32 bits", f)
	default:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f))), nil
	}
}

// bytes are the data of bytes or a fixed. Text is what reading makes of them.
func (t *avroType) bytes(v any) ([]byte, error) {
	data, ok := v.([]byte)
	if !ok {
		text, isText := v.(string)
		var err error
		switch {
		case t.logical == "decimal":
			return decimalBytes(v, t.precision, t.scale, t.size)
		case !isText:
			return nil, mismatch(t.String(), v)
		case t.logical == "uuid" && t.size == 16:
			data, err = hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		default:
			data, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return nil, mismatch(t.String()+" as text: base64, or a uuid", v)
		}
	}
	if t.kind == "fixed" && len(data) != t.size {
		return nil, fmt.Errorf("want %s of %d bytes, got %d", t, t.size, len(data))
	}
	return data, nil
}

// appendList writes the elements in one block.
func (t *avroType) appendList(b []byte, list []any) ([]byte, error) {
	if len(list) > 0 {
		b = binary.AppendVarint(b, int64(len(list)))
	}
	var err error
	for i, item := range list {
		if b, err = t.items.append(b, item); err != nil {
			return b, inElement(i, err)
		}
	}
	return append(b, 0), nil
}

// appendMap writes the entries in order of their names.
func (t *avroType) appendMap(b []byte, object map[string]any) ([]byte, error) {
	if len(object) > 0 {
		b = binary.AppendVarint(b, int64(len(object)))
	}
	var err error
	for _, name := range slices.Sorted(maps.Keys(object)) {
		b = append(binary.AppendVarint(b, int64(len(name))), name...)
		if b, err = t.items.append(b, object[name]); err != nil {
			return b, inField(name, err)
		}
	}
	return append(b, 0), nil
}

func (t *avroType) appendRecord(b []byte, object map[string]any) ([]byte, error) {
	known := 0
	for i := range t.fields {
		f := &t.fields[i]
		v, ok := object[f.name]
		var err error
		switch {
		case ok:
			known++
			if b, err = f.typ.append(b, v); err != nil {
				return b, inField(f.name, err)
			}
		case f.absent == nil:
			return b, inField(f.name, fmt.Errorf("it is missing, and the schema has no default for it"))
		default:
			b = append(b, f.absent...)
		}
	}
	if known < len(object) {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !t.known[name] {
				return b, inField(name, fmt.Errorf("%s has no such field", t))
			}
		}
	}
	return b, nil
}

// appendUnion writes v as the first branch of its kind, or else the first one that takes it. An object {NAME: value} chooses the branch
// by the name of its record, enum or fixed.
func (t *avroType) appendUnion(b []byte, v any) ([]byte, error) {
	if v == nil {
		if t.nullable < 0 {
			return b, mismatch(t.String(), v)
		}
		return binary.AppendVarint(b, int64(t.nullable)), nil
	}
	if i := 1 - t.nullable; len(t.branches) == 2 && t.nullable >= 0 {
		out, err := t.branches[i].append(binary.AppendVarint(b, int64(i)), v)
		if object, named := v.(map[string]any); err == nil || !named || len(object) != 1 {
			return out, err
		}
	}
	var reason error
	for _, exactly := range []bool{true, false} {
		for i, branch := range t.branches {
			if branch.isKindOf(v) != exactly {
				continue
			}
			out, err := branch.append(binary.AppendVarint(b, int64(i)), v)
			if err == nil {
				return out, nil
			}
			if reason == nil && exactly {
				reason = err
			}
		}
	}
	if object, ok := v.(map[string]any); ok && len(object) == 1 {
		for i, branch := range t.branches {
			if inner, ok := object[branch.name]; ok && branch.name != "" {
				return branch.append(binary.AppendVarint(b, int64(i)), inner)
			}
		}
	}
	if reason != nil {
		return b, reason
	}
	return b, mismatch(t.String(), v)
}

// isKindOf tells the branches that v is meant for from those that can also take it.
func (t *avroType) isKindOf(v any) bool {
	switch v.(type) {
	case string:
		return t.kind == "string" || t.kind == "enum"
	case []byte:
		return t.kind == "bytes" || t.kind == "fixed"
	case bool:
		return t.kind == "boolean"
	case float64, float32:
		return t.kind == "double" || t.kind == "float"
	case []any:
		return t.kind == "array"
	case map[string]any:
		return t.kind == "record" || t.kind == "map"
	default:
		return t.kind == "int" || t.kind == "long"
	}
}
