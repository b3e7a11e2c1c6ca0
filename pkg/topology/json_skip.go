package topology

import (
	"encoding/json"
	"math"
	"strconv"
)

// jsonSkipper steps over JSON without making anything of it, and takes what decodeJSON takes.
type jsonSkipper struct {
	jsonDecoder
	anyNumber bool // those that are too large for a float are taken too
}

// checkJSON reports what is wrong with a value that nobody looks into: in it numbers may be of any size.
func checkJSON(raw []byte) error {
	s := jsonSkipper{jsonDecoder: jsonDecoder{src: raw}, anyNumber: true}
	if s.value(0) && s.end() {
		return nil
	}
	_, err := decodeJSON(raw)
	return err
}

// end reports whether nothing follows.
func (s *jsonSkipper) end() bool {
	s.space()
	return s.at == len(s.src)
}

// value reports whether there is a value, and steps over it.
func (s *jsonSkipper) value(depth int) bool {
	if depth > maxJSONDepth {
		return false
	}
	switch s.space() {
	case '{':
		return s.fields(depth, nil)
	case '[':
		return s.list(depth)
	case '"':
		_, _, ok := s.quotedText()
		return ok
	case 't':
		return s.literal("true") == nil
	case 'f':
		return s.literal("false") == nil
	case 'n':
		return s.literal("null") == nil
	default:
		return s.number()
	}
}

// fields steps over an object, and notes its fields in to, if that is not nil.
func (s *jsonSkipper) fields(depth int, to *fields) bool {
	s.at++
	if s.space() == '}' {
		s.at++
		return true
	}
	for {
		if s.space() != '"' {
			return false
		}
		name, plain, ok := s.quotedText()
		if !ok || s.colon() != nil {
			return false
		}
		s.space()
		start := s.at
		if !s.value(depth + 1) {
			return false
		}
		if to != nil && !to.note(name, plain, s.src[start:s.at]) {
			return false
		}
		if more, err := s.more('}'); !more {
			return err == nil
		}
	}
}

func (s *jsonSkipper) list(depth int) bool {
	s.at++
	if s.space() == ']' {
		s.at++
		return true
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		if more, err := s.more(']'); !more {
			return err == nil
		}
	}
}

// quotedText steps over a string; its escapes are looked at by encoding/json.
func (s *jsonSkipper) quotedText() (quoted []byte, plain, ok bool) {
	quoted, plain, err := s.quoted()
	return quoted, plain, err == nil && (plain || !escaped(quoted) || json.Valid(quoted))
}

// surelyFinite is how many characters a number without an exponent can have and still fit a float64.
const surelyFinite = 300

func (s *jsonSkipper) number() bool {
	text, as, err := s.figures()
	if err != nil || s.anyNumber || as != exponent && len(text) < surelyFinite {
		return err == nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsInf(f, 0)
}
