package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxJSONDepth bounds nesting, as encoding/json does.
const maxJSONDepth = 10000

func checkJSON(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	_, err := decodeJSON(raw)
	return err
}

// decodeJSON reads one JSON value: whole numbers that fit 64 bits as int, other numbers as float64, lists as []any, objects
// as map[string]any. It takes what encoding/json takes, in a fraction of the time: strings share the memory of raw, which
// must stay as it is, and no number is parsed twice.
func decodeJSON(raw []byte) (any, error) {
	d := jsonDecoder{src: raw}
	v, err := d.value(0)
	if err == nil {
		if d.space(); d.at < len(d.src) {
			err = d.unexpected("after the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return v, nil
}

type jsonDecoder struct {
	src []byte
	at  int
}

// space moves to the next byte that is no white space and returns it; 0 at the end.
func (d *jsonDecoder) space() byte {
	for ; d.at < len(d.src); d.at++ {
		switch c := d.src[d.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (d *jsonDecoder) unexpected(where string) error {
	if d.at >= len(d.src) {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("unexpected %q at byte %d, %s", d.src[d.at], d.at, where)
}

func (d *jsonDecoder) value(depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, errors.New("it is nested too deeply")
	}
	switch c := d.space(); c {
	case '{':
		return d.object(depth)
	case '[':
		return d.list(depth)
	case '"':
		return d.text()
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return d.number()
		}
		return nil, d.unexpected("where a value is wanted")
	}
}

func (d *jsonDecoder) literal(word string) error {
	for i := range len(word) {
		if d.at >= len(d.src) || d.src[d.at] != word[i] {
			return d.unexpected("in " + word)
		}
		d.at++
	}
	return nil
}

func (d *jsonDecoder) object(depth int) (any, error) {
	out := make(map[string]any)
	d.at++
	if d.space() == '}' {
		d.at++
		return out, nil
	}
	for {
		if d.space() != '"' {
			return nil, d.unexpected("where a field's name is wanted")
		}
		name, err := d.text()
		if err != nil {
			return nil, err
		}
		if d.space() != ':' {
			return nil, d.unexpected("after a field's name")
		}
		d.at++
		if out[name], err = d.value(depth + 1); err != nil {
			return nil, err
		}
		if more, err := d.more('}'); !more {
			return out, err
		}
	}
}

func (d *jsonDecoder) list(depth int) (any, error) {
	out := []any{}
	d.at++
	if d.space() == ']' {
		d.at++
		return out, nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if more, err := d.more(']'); !more {
			return out, err
		}
	}
}

// more steps over the comma before the next element, or over the closing bracket.
func (d *jsonDecoder) more(closing byte) (bool, error) {
	switch d.space() {
	case ',':
		d.at++
		return true, nil
	case closing:
		d.at++
		return false, nil
	default:
		return false, d.unexpected("where ',' or '" + string(closing) + "' is wanted")
	}
}

// text reads a string. Escapes and broken UTF-8 are rare, and left to encoding/json.
func (d *jsonDecoder) text() (string, error) {
	start := d.at
	plain := true
	for d.at++; d.at < len(d.src); d.at++ {
		switch c := d.src[d.at]; {
		case c == '"':
			d.at++
			quoted := d.src[start:d.at]
			if text := quoted[1 : len(quoted)-1]; plain || utf8.Valid(text) && !escaped(text) {
				return bytesText(text), nil
			}
			var s string
			err := json.Unmarshal(quoted, &s)
			return s, err
		case c == '\\':
			plain = false
			d.at++
		case c >= utf8.RuneSelf:
			plain = false
		case c < ' ':
			return "", d.unexpected("in a string")
		}
	}
	d.at = len(d.src)
	return "", d.unexpected("in a string")
}

func escaped(text []byte) bool {
	for _, c := range text {
		if c == '\\' {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (d *jsonDecoder) peek() byte {
	if d.at < len(d.src) {
		return d.src[d.at]
	}
	return 0
}

// digits steps over digits; there must be one.
func (d *jsonDecoder) digits() error {
	if !isDigit(d.peek()) {
		return d.unexpected("in a number")
	}
	for isDigit(d.peek()) {
		d.at++
	}
	return nil
}

func (d *jsonDecoder) number() (any, error) {
	start, whole := d.at, true
	if d.peek() == '-' {
		d.at++
	}
	if d.peek() == '0' {
		d.at++
	} else if err := d.digits(); err != nil {
		return nil, err
	}
	if d.peek() == '.' {
		whole = false
		d.at++
		if err := d.digits(); err != nil {
			return nil, err
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		whole = false
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		if err := d.digits(); err != nil {
			return nil, err
		}
	}
	text := bytesText(d.src[start:d.at])
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return int(n), nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %.40s is too large", text)
	}
	return f, nil
}
