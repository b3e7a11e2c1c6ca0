package topology

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Store finds a store by its name, and the subtopology whose tasks keep it; nil, nil if there is none.
func (t *Topology) Store(name string) (*Subtopology, *StoreSpec) {
	for _, s := range t.Subtopologies {
		for i := range s.Stores {
			if s.Stores[i].Name == name {
				return s, &s.Stores[i]
			}
		}
	}
	return nil, nil
}

// Split cuts what a store holds for a key into the timestamp, in ms since the epoch, and the value in its format.
func (s *StoreSpec) Split(stored []byte) (timestamp int64, value []byte, err error) {
	if len(stored) < stampLen {
		return 0, nil, s.corrupt(stored)
	}
	return int64(binary.BigEndian.Uint64(stored)), stored[stampLen:], nil
}

// ParseText encodes a key or a value that is written as text: strings and bytes as they are, numbers in decimal, JSON as
// it stands, without white space around it.
func (f Format) ParseText(text string) ([]byte, error) {
	switch f {
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number of 64 bits", text)
		}
		return binary.BigEndian.AppendUint64(nil, uint64(n)), nil
	case Float:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", text)
		}
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(x)), nil
	case JSON:
		raw := []byte(text)
		if err := checkJSON(raw); err != nil {
			return nil, fmt.Errorf("%q is %w", text, err)
		}
		return raw, nil
	default:
		return []byte(text), nil
	}
}

// ToJSON shows something encoded as a JSON value: a number, a text, or what JSON it is. Bytes that are no UTF-8 are
// {"base64": "…"}, numbers that JSON does not have a text.
func (f Format) ToJSON(raw []byte) (json.RawMessage, error) {
	switch f {
	case Int, Float:
		if len(raw) != 8 {
			return nil, fmt.Errorf("format %s has 8 bytes, got %d", f, len(raw))
		}
		n := binary.BigEndian.Uint64(raw)
		if f == Int {
			return json.RawMessage(strconv.FormatInt(int64(n), 10)), nil
		}
		x := math.Float64frombits(n)
		if text, err := appendJSONFloat(nil, x); err == nil {
			return text, nil
		}
		switch {
		case math.IsInf(x, 1):
			return json.RawMessage(`"Infinity"`), nil
		case math.IsInf(x, -1):
			return json.RawMessage(`"-Infinity"`), nil
		}
		return json.RawMessage(`"NaN"`), nil
	case JSON:
		return raw, checkJSON(raw)
	default:
		if !utf8.Valid(raw) {
			return fmt.Appendf(nil, `{"base64":%q}`, base64.StdEncoding.EncodeToString(raw)), nil
		}
		return appendJSONText(nil, string(raw)), nil
	}
}
