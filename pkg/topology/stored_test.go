package topology

import (
	"math"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		f    Format
		text string
		want string // as JSON; "" if the text is refused
	}{
		{String, "to be", `"to be"`},
		{String, "", `""`},
		{String, "a\"b<\n", `"a\"b<\n"`},
		{String, "\xff\x00", `{"base64":"/wA="}`},
		{Bytes, "text", `"text"`},
		{Bytes, "\x80", `{"base64":"gA=="}`},
		{Int, "-7", "-7"},
		{Int, "9223372036854775807", "9223372036854775807"},
		{Int, "9223372036854775808", ""},
		{Int, "1.5", ""},
		{Float, "1.5", "1.5"},
		{Float, "-2e300", "-2e+300"},
		{Float, "NaN", `"NaN"`},
		{Float, "-inf", `"-Infinity"`},
		{Float, "much", ""},
		{JSON, `{"a":[1,null]}`, `{"a":[1,null]}`},
		{JSON, `{"a":`, ""},
		{JSON, ``, ""},
	} {
		raw, err := c.f.ParseText(c.text)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s %q is taken as %q", c.f, c.text, raw)
			}
			continue
		}
		got, errJSON := c.f.ToJSON(raw)
		if err != nil || errJSON != nil || string(got) != c.want {
			t.Errorf("%s %q: %s, want %s (%v, %v)", c.f, c.text, got, c.want, err, errJSON)
		}
	}
	if _, err := Int.ToJSON([]byte("short")); err == nil {
		t.Error("an int of five bytes is shown")
	}
}

func TestStore(t *testing.T) {
	top := parse(t, `
streams:
- name: a
  from: {topic: in}
  steps:
    - rekey: value
    - count: {store: counts}
    - to: {topic: out, value: int}
`)
	sub, store := top.Store("counts")
	if sub == nil || sub.ID != 1 || store.Value != Int {
		t.Fatalf("%+v %+v", sub, store)
	}
	if sub, store := top.Store("count"); sub != nil || store != nil {
		t.Errorf("%+v %+v", sub, store)
	}
	stored := append([]byte{0, 0, 0, 0, 0, 0, 1, 2}, "value"...)
	if ts, value, err := store.Split(stored); err != nil || ts != 258 || string(value) != "value" {
		t.Errorf("%d %q %v", ts, value, err)
	}
	if _, _, err := store.Split(stored[:7]); err == nil || !strings.Contains(err.Error(), "counts") {
		t.Errorf("%v", err)
	}
	if n := int64(math.MaxInt64); n > 0 {
		if ts, _, err := store.Split([]byte{0x7f, 255, 255, 255, 255, 255, 255, 255}); err != nil || ts != n {
			t.Errorf("%d %v", ts, err)
		}
	}
}
