package format

import (
	"fmt"
	"math"
	"strings"
)

// Codec reads and writes keys or values. It may be used by several goroutines.
type Codec interface {
	// Decode reads what stands in raw, which must stay as it is: texts share its memory.
	Decode(raw []byte) (any, error)
	// Append writes v behind b. Equal values give equal bytes.
	Append(b []byte, v any) ([]byte, error)
	// String says in a few words what it is, the same for codecs that do the same.
	String() string
}

// Unavailable says that a schema is not known yet and cannot be asked for at present. No record is to blame for it.
type Unavailable struct{ Err error }

func (e *Unavailable) Error() string { return e.Err.Error() }
func (e *Unavailable) Unwrap() error { return e.Err }

// mismatch says that a value is not what a schema wants.
func mismatch(want string, v any) error { return fmt.Errorf("want %s, got %s", want, Describe(v)) }

// Describe names a value in an error, short enough for a log line.
func Describe(v any) string {
	const most = 40
	text := fmt.Sprintf("%v", v)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the string %q", text)
	case []byte:
		return "bytes"
	case bool:
		return "the bool " + text
	case float64, float32:
		return "the float " + text
	case []any, []string:
		return "the list " + text
	case map[string]any:
		return "the object " + text
	default:
		return fmt.Sprintf("%s (%T)", text, v)
	}
}

// Integer takes a value as a whole number: an integer of a kind that JSON and expressions give.
func Integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	default:
		return 0, false
	}
}

// whole takes a value as a whole number: an integer of any kind, or a float without a fraction, as JSON does not tell
// the two apart.
func whole(v any) (int64, bool) {
	n, ok := v.(float64)
	if !ok {
		return Integer(v)
	}
	// Beyond 2^63 the conversion is not defined.
	if n == math.Trunc(n) && n >= -1<<63 && n < 1<<63 {
		return int64(n), true
	}
	return 0, false
}

// real takes a number as a float.
func real(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case float32:
		return float64(n), true
	}
	n, ok := whole(v)
	return float64(n), ok
}
