package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// plainDecode is decodeJSON by way of encoding/json.
func plainDecode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows")
	}
	return plainNumbers(v)
}

func plainNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if n, notInt := strconv.ParseInt(string(v), 10, 64); notInt == nil {
			return int(n), nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			if v[i], err = plainNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = plainNumbers(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func plainEncode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// checkAgainstLibrary compares what we read and write with encoding/json.
func checkAgainstLibrary(t *testing.T, raw []byte) {
	t.Helper()
	before := string(raw)
	got, err := decodeJSON(raw)
	checkFields(t, raw, got, err)
	want, wantErr := plainDecode(raw)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: got error %v, encoding/json says %v", raw, err, wantErr)
	}
	if string(raw) != before {
		t.Fatalf("%q was changed to %q", before, raw)
	}
	if err != nil {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %#v, encoding/json gives %#v", raw, got, want)
	}
	text, err := appendJSON(nil, got, 0)
	wantText, wantErr := plainEncode(want)
	if string(text) != wantText || (err == nil) != (wantErr == nil) {
		t.Fatalf("%q is written %s, %v; encoding/json writes %s, %v", raw, text, err, wantText, wantErr)
	}
}

// checkFields compares what is read field by field with what is decoded at once.
func checkFields(t *testing.T, raw []byte, want any, wantErr error) {
	t.Helper()
	if checked := checkJSON(raw); (checked == nil) != (json.Valid(raw) || wantErr == nil) {
		t.Fatalf("%q: checked, it gives error %v; json.Valid says %v", raw, checked, json.Valid(raw))
	}
	var f fields
	d, err := f.datum(raw)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q: by field the error is %v, else %v", raw, err, wantErr)
	}
	object, isObject := want.(map[string]any)
	if err != nil || isObject != (d.fields != nil) || d.null != (want == nil) {
		if err == nil {
			t.Fatalf("%q has fields: %v; null: %v", raw, d.fields != nil, d.null)
		}
		return
	}
	for name, v := range object {
		if one, ok := d.field(name); !ok || !reflect.DeepEqual(one.boxed(), v) {
			t.Fatalf("%q: field %q is %#v, want %#v", raw, name, one.boxed(), v)
		}
	}
	if got, err := d.boxed(JSON); !d.null && (err != nil || !reflect.DeepEqual(got, want)) {
		t.Fatalf("%q: by field it is %#v, %v, else %#v", raw, got, err, want)
	}
}

var jsonSamples = []string{
	`{"a": 1, "b": [1.5, -0, -0.0, 0.1e-7, 1E21, 1e20, 123456789012345678901234567890, 9223372036854775807, -9223372036854775808, 9223372036854775808]}`,
	`{"": {}, "x": [], "y": [[]], "z": null, "t": true, "f": false}`,
	`"é \u00e9 \ud83d\ude00 \ud83d \n \/ \" \\ \b\f\t\r \u2028 \u0000"`, "\"\xff\xfe\"", "\"a\x7f\"", "\"a\x01\"", `"\x"`, `"\u12"`, `"`, `"\`, `"\"`,
	` [ 1 , 2 ] `, `[1,]`, `[,1]`, `{"a":}`, `{"a"}`, `{a:1}`, `{"a":1,}`, `{"a":1 "b":2}`, `[1 2]`, `01`, `-`, `-a`, `1.`, `.5`, `1e`, `1e+`, `+1`, `1e999`, `-1e999`, `1e-999`,
	`{"a\u0062":1,"\ud800":2,"ab":3,"é":[1e400]}`, `{"a":{"b":1},"a":{}}`, `{"a":"12345678\n1234567é12345678"}`, "\"1234567\x1f12345678\"", "{\"\xff\":1}", `{"a":1}x`, `{"a":` + strings.Repeat("9", 400) + `}`,
	`tru`, `truE`, `nul`, `nulll`, `null x`, ``, ` `, "\xef\xbb\xbf1", "\"\u2028<>&\"", `{"a":1,"a":2}`, "\v1", "[1\x00]",
}

func TestJSONAgrees(t *testing.T) {
	for _, s := range jsonSamples {
		checkAgainstLibrary(t, []byte(s))
	}
	deep := strings.Repeat("[", maxJSONDepth-1) + strings.Repeat("]", maxJSONDepth-1)
	checkAgainstLibrary(t, []byte(deep))
	if _, err := decodeJSON([]byte(strings.Repeat("[", 1e6))); err == nil {
		t.Error("endless nesting is taken")
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range jsonSamples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) > maxJSONDepth/2 {
			t.Skip("the limits of depth differ by one")
		}
		checkAgainstLibrary(t, raw)
	})
}

// What expressions give beside what JSON has.
func TestEncodeOthers(t *testing.T) {
	type pair struct {
		v    any
		want string
	}
	for _, p := range []pair{
		{[]string{"<a>", "b"}, `["<a>","b"]`},
		{map[string]string{"b": "2", "a": "1"}, `{"a":"1","b":"2"}`},
		{int64(5), `5`},
		{[]any{uint8(1), []byte("ab")}, `[1,"YWI="]`},
		{time.Unix(0, 0).UTC(), `"1970-01-01T00:00:00Z"`},
	} {
		got, err := appendJSON(nil, p.v, 0)
		if err != nil || string(got) != p.want {
			t.Errorf("%v: got %s, %v; want %s", p.v, got, err, p.want)
		}
	}
	for _, v := range []any{math.NaN(), []any{math.Inf(1)}, map[string]any{"a": math.Inf(-1)}, func() {}} {
		if got, err := appendJSON(nil, v, 0); err == nil {
			t.Errorf("%v is written as %s", v, got)
		}
	}
}
