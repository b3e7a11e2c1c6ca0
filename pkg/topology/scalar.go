package topology

import (
	"math"
	"strconv"
)

// scalar is what expressions compute with, without the allocation that an interface costs. The zero scalar is null.
type scalar struct {
	kind kind
	bits uint64 // of ints, floats and truths
	text string
	v    any // of others
}

// kind is what a scalar holds.
type kind uint8

const (
	nothing kind = iota // null
	truthKind
	intKind
	floatKind
	textKind
	otherKind // a list, an object, or what a codec gives beside these
)

func truthScalar(b bool) scalar {
	if b {
		return scalar{kind: truthKind, bits: 1}
	}
	return scalar{kind: truthKind}
}
func intScalar(n int64) scalar     { return scalar{kind: intKind, bits: uint64(n)} }
func floatScalar(f float64) scalar { return scalar{kind: floatKind, bits: math.Float64bits(f)} }
func textScalar(s string) scalar   { return scalar{kind: textKind, text: s} }

func (s scalar) truth() bool    { return s.bits != 0 }
func (s scalar) int() int64     { return int64(s.bits) }
func (s scalar) isNumber() bool { return s.kind == intKind || s.kind == floatKind }

// float is for numbers.
func (s scalar) float() float64 {
	if s.kind == intKind {
		return float64(s.int())
	}
	return math.Float64frombits(s.bits)
}

// scalarOf takes a value as the expression library sees it.
func scalarOf(v any) scalar {
	switch v := v.(type) {
	case nil:
		return scalar{}
	case bool:
		return truthScalar(v)
	case int:
		return intScalar(int64(v))
	case float64:
		return floatScalar(v)
	case string:
		return textScalar(v)
	default:
		return scalar{kind: otherKind, v: v}
	}
}

// boxed is the opposite of scalarOf.
func (s scalar) boxed() any {
	switch s.kind {
	case nothing:
		return nil
	case truthKind:
		return s.truth()
	case intKind:
		return int(s.int())
	case floatKind:
		return s.float()
	case textKind:
		return s.text
	default:
		return s.v
	}
}

// append writes s as JSON.
func (s scalar) append(b []byte, depth int) ([]byte, error) {
	switch s.kind {
	case intKind:
		return strconv.AppendInt(b, s.int(), 10), nil
	case floatKind:
		return appendJSONFloat(b, s.float())
	case textKind:
		return appendJSONText(b, s.text), nil
	default:
		return appendJSON(b, s.boxed(), depth)
	}
}

// datum takes s as format f; false: it has another one.
func (s scalar) datum(f Format) (datum, bool) {
	switch {
	case s.kind == nothing:
		return nullDatum(), true
	case f == JSON:
		return jsonDatum(s.boxed()), true
	case f == Float && s.isNumber():
		return floatDatum(s.float()), true
	case f == Int && s.kind == intKind:
		return intDatum(s.int()), true
	case f == String && s.kind == textKind:
		return textDatum(s.text), true
	default:
		return datum{}, false
	}
}
