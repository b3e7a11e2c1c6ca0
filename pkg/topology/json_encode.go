package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// appendJSON writes v as encoding/json does without HTML escapes: objects have their fields in order of name, so that equal
// values give equal bytes. What expressions seldom give is left to encoding/json.
func appendJSON(b []byte, v any, depth int) ([]byte, error) {
	if depth > maxJSONDepth {
		return b, errors.New("it is nested too deeply")
	}
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case float64:
		return appendJSONFloat(b, v)
	case string:
		return appendJSONText(b, v), nil
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, item, depth+1); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, name := range sortedNames(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSONText(b, name), ':')
			if b, err = appendJSON(b, v[name], depth+1); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	default:
		var other bytes.Buffer
		e := json.NewEncoder(&other)
		e.SetEscapeHTML(false)
		err := e.Encode(v)
		return append(b, bytes.TrimSuffix(other.Bytes(), []byte("\n"))...), err
	}
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// appendJSONFloat writes the shortest form that reads back as f, with an exponent where that is customary.
func appendJSONFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b, fmt.Errorf("the number %v has no JSON form", f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, f, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b = append(b[:n-2], b[n-1]) // e-09 is written e-9
	}
	return b, nil
}

const hexDigits = "0123456789abcdef"

// appendJSONText writes a string; broken UTF-8 becomes the replacement character.
func appendJSONText(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // s[:done] is written
	for i := 0; ; {
		if i = plainEnd(textBytes(s), i); i == len(s) {
			break
		}
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		broken := c == utf8.RuneError && size == 1
		if c >= ' ' && c != '"' && c != '\\' && c != '\u2028' && c != '\u2029' && !broken {
			i += size
			continue
		}
		b = append(b, s[done:i]...)
		i += size
		done = i
		if short := shortEscapes[c&0x7f]; c < utf8.RuneSelf && short != 0 {
			b = append(b, '\\', short)
			continue
		}
		b = append(b, '\\', 'u', hexDigits[c>>12&15], hexDigits[c>>8&15], hexDigits[c>>4&15], hexDigits[c&15])
	}
	return append(append(b, s[done:]...), '"')
}

var shortEscapes = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
