package topology

import (
	"bytes"
	"reflect"
	"testing"
)

func TestEncodeAndDecode(t *testing.T) {
	for _, c := range []struct {
		f    Format
		v    any
		want string
		back any
	}{
		{String, "é", "é", "é"},
		{String, "", "", ""},
		{Bytes, []byte{0, 255}, "\x00\xff", []byte{0, 255}},
		{Int, 258, "\x00\x00\x00\x00\x00\x00\x01\x02", 258},
		{Float, 2, "\x40\x00\x00\x00\x00\x00\x00\x00", 2.0},
		{JSON, map[string]any{"b": []any{1, 2.5}, "a": nil}, `{"a":null,"b":[1,2.5]}`, map[string]any{"b": []any{1, 2.5}, "a": nil}},
	} {
		raw, err := c.f.Encode(c.v)
		if err != nil || raw == nil || !bytes.Equal(raw, []byte(c.want)) {
			t.Errorf("%v as %s: %q, %v; want %q", c.v, c.f, raw, err, c.want)
		}
		if back, err := c.f.Decode(raw); err != nil || !reflect.DeepEqual(back, c.back) {
			t.Errorf("%q read as %s: %#v, %v; want %#v", raw, c.f, back, err, c.back)
		}
		if raw, err := c.f.Encode(nil); raw != nil || err != nil {
			t.Errorf("null as %s: %q, %v", c.f, raw, err)
		}
		if v, err := c.f.Decode(nil); v != nil || err != nil {
			t.Errorf("null read as %s: %v, %v", c.f, v, err)
		}
	}
	for _, c := range []struct {
		f Format
		v any
	}{{Int, 2.5}, {Int, "2"}, {String, 2}, {Float, true}, {JSON, func() {}}} {
		if raw, err := c.f.Encode(c.v); err == nil {
			t.Errorf("%v as %s: %q, want an error", c.v, c.f, raw)
		}
	}
}
