package topology

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// maxJSONDepth bounds nesting, as encoding/json does.
const maxJSONDepth = 10000

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
			n, err := d.number()
			return n.boxed(), err
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
		if err := d.colon(); err != nil {
			return nil, err
		}
		if out[name], err = d.value(depth + 1); err != nil {
			return nil, err
		}
		if more, err := d.more('}'); !more {
			return out, err
		}
	}
}

// colon steps over the one behind a field's name.
func (d *jsonDecoder) colon() error {
	if d.space() != ':' {
		return d.unexpected("after a field's name")
	}
	d.at++
	return nil
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
	quoted, plain, err := d.quoted()
	if err != nil {
		return "", err
	}
	return unquoted(quoted, plain)
}

// unquoted is the string in the quotes; plain says that it is ASCII without escapes.
func unquoted(quoted []byte, plain bool) (string, error) {
	if text := quoted[1 : len(quoted)-1]; plain || utf8.Valid(text) && !escaped(text) {
		return bytesText(text), nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err
}

// quoted steps over a string, whose escapes are not looked at.
func (d *jsonDecoder) quoted() (quoted []byte, plain bool, err error) {
	start := d.at
	plain = true
	for d.at++; ; {
		d.at = plainEnd(d.src, d.at)
		if d.at >= len(d.src) {
			return nil, false, d.unexpected("in a string")
		}
		switch c := d.src[d.at]; {
		case c == '"':
			d.at++
			return d.src[start:d.at], plain, nil
		case c == '\\':
			plain = false
			d.at = min(d.at+2, len(d.src))
		case c >= utf8.RuneSelf:
			plain = false
			d.at++
		default:
			return nil, false, d.unexpected("in a string")
		}
	}
}

// plainEnd returns the place of the first byte from at on that is not printable ASCII, or is a quote or a backslash. It looks at
// eight bytes at a time: m has the high bit of the first such byte set, and of none before it.
func plainEnd(src []byte, at int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(src); at += 8 {
		w := binary.LittleEndian.Uint64(src[at:])
		quote, slash := w^each*'"', w^each*'\\'
		if m := ((quote-each)&^quote | (slash-each)&^slash | (w-each*' ')&^w | w) & high; m != 0 {
			return at + bits.TrailingZeros64(m)/8
		}
	}
	for ; at < len(src); at++ {
		if c := src[at]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return at
}

func escaped(text []byte) bool { return bytes.IndexByte(text, '\\') >= 0 }

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

// notation is how a number is written.
type notation uint8

const (
	whole notation = iota
	fraction
	exponent
)

// figures steps over a number.
func (d *jsonDecoder) figures() (text string, as notation, err error) {
	start := d.at
	if d.peek() == '-' {
		d.at++
	}
	if d.peek() == '0' {
		d.at++
	} else if err := d.digits(); err != nil {
		return "", as, err
	}
	if d.peek() == '.' {
		as = fraction
		d.at++
		if err := d.digits(); err != nil {
			return "", as, err
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		as = exponent
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		if err := d.digits(); err != nil {
			return "", as, err
		}
	}
	return bytesText(d.src[start:d.at]), as, nil
}

func (d *jsonDecoder) number() (scalar, error) {
	text, as, err := d.figures()
	if err != nil {
		return scalar{}, err
	}
	if as == whole {
		// A whole number that does not fit 64 bits is read as a float.
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return intScalar(n), nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return scalar{}, fmt.Errorf("the number %.40s is too large", text)
	}
	return floatScalar(f), nil
}
