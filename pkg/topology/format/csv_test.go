package format

import (
	"bytes"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func newCSV(t testing.TB, delimiter rune, columns ...Column) *CSV {
	t.Helper()
	c, err := NewCSV(columns, delimiter)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var orderColumns = []Column{{"id", "int"}, {"name", "string"}, {"price", "float"}, {"paid", "bool"}}

func TestCSVDecode(t *testing.T) {
	c := newCSV(t, ',', orderColumns...)
	tests := []struct {
		in   string
		want any // an object, or the text of an error
	}{
		{"7,tea,2.5,true", map[string]any{"id": 7, "name": "tea", "price": 2.5, "paid": true}},
		{"7,tea,2.5,true\r\n", map[string]any{"id": 7, "name": "tea", "price": 2.5, "paid": true}},
		{",,,", map[string]any{"id": nil, "name": "", "price": nil, "paid": nil}},
		{` 9223372036854775807 ,"a ""b"", c",-1e3,f`, map[string]any{"id": math.MaxInt64, "name": `a "b", c`, "price": -1000.0, "paid": false}},
		{"1,\"two\r\nlines\",1,1\n", map[string]any{"id": 1, "name": "two\r\nlines", "price": 1.0, "paid": true}},
		{"", "csv has 4 columns, got 1"},
		{"7,tea", "csv has 4 columns, got 2"},
		{"7,tea,2,true,more", "csv has 4 columns, got 5"},
		{"x,tea,2,true", `column id: the string "x" is no int of 64 bits`},
		{"9223372036854775808,tea,2,true", `column id: the string "9223372036854775808" is no int of 64 bits`},
		{"7,tea,1e999,true", `column price: the string "1e999" is no float of 64 bits`},
		{"7,tea,2,perhaps", `column paid: the string "perhaps" is no bool`},
		{"7,\"tea,2,true", "not valid CSV: field 2: the quote that opens it is not closed"},
		{"7,te\"a,2,true", "not valid CSV: field 2: a quote stands where none may: put the field in quotes, and write each quote in it twice"},
		{"7,\"tea\"x,2,true", "not valid CSV: field 2: a quote stands where none may: put the field in quotes, and write each quote in it twice"},
		{"7,tea,2,true\n8,milk,1,true", "not valid CSV: field 4: a line break stands outside of quotes: one record is one line"},
	}
	for _, tt := range tests {
		got, err := c.Decode([]byte(tt.in))
		if err != nil {
			got = err.Error()
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: got %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestCSVAppend(t *testing.T) {
	c := newCSV(t, ';', orderColumns...)
	tests := []struct {
		in   any
		want string // or the text of an error
	}{
		{map[string]any{"id": 7, "name": `a; "b"`, "price": 2.5, "paid": true}, `7;"a; ""b""";2.5;true`},
		{map[string]any{"name": "a"}, ";a;;"},
		{map[string]any{"id": 3.0, "price": 4}, "3;;4;"},
		{map[string]any{"id": 3.5}, "column id: want int, got the float 3.5"},
		{map[string]any{"id": "3"}, `column id: want int, got the string "3"`},
		{map[string]any{"name": 3}, "column name: want string, got 3 (int)"},
		{map[string]any{"paid": 1}, "column paid: want bool, got 1 (int)"},
		{map[string]any{"id": 1, "nmae": "x", "other": 2}, `there is no column "nmae"`},
		{"7;tea", `want an object with the fields of the columns, got the string "7;tea"`},
	}
	for _, tt := range tests {
		b, err := c.Append(nil, tt.in)
		got := string(b)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestNewCSV(t *testing.T) {
	for want, make := range map[string]func() (*CSV, error){
		"csv has no columns":                func() (*CSV, error) { return NewCSV(nil, ',') },
		"a column has no name":              func() (*CSV, error) { return NewCSV([]Column{{"", "int"}}, ',') },
		`a second column is called "a"`:     func() (*CSV, error) { return NewCSV([]Column{{"a", "int"}, {"a", "int"}}, ',') },
		`column a: there is no type "int8"`: func() (*CSV, error) { return NewCSV([]Column{{"a", "int8"}}, ',') },
		`'"' cannot be a delimiter`:         func() (*CSV, error) { return NewCSV([]Column{{"a", "int"}}, '"') },
	} {
		if _, err := make(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// randomText has what CSV must take care of.
func randomText(r *rand.Rand) string {
	const letters = "ab\",;\n \t'é"
	runes := []rune(letters)
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}

// TestCSVRoundTrip writes random lines with the standard library and with the codec, and reads both with both.
func TestCSVRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	texts := newCSV(t, ';', Column{"a", "string"}, Column{"b", "string"}, Column{"c", "string"})
	for range 5000 {
		fields := []string{randomText(r), randomText(r), randomText(r)}
		object := map[string]any{"a": fields[0], "b": fields[1], "c": fields[2]}
		own, err := texts.Append(nil, object)
		if err != nil {
			t.Fatal(err)
		}
		var library bytes.Buffer
		w := csv.NewWriter(&library)
		w.Comma = ';'
		if err := w.Write(fields); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		for _, line := range [][]byte{own, library.Bytes()} {
			if got, err := texts.Decode(line); err != nil || !reflect.DeepEqual(got, object) {
				t.Fatalf("%q: got %v, %v; want %v", line, got, err, object)
			}
			reader := csv.NewReader(bytes.NewReader(line))
			reader.Comma = ';'
			if got, err := reader.Read(); err != nil || !reflect.DeepEqual(got, fields) {
				t.Fatalf("%q: the standard library reads %q, %v; want %q", line, got, err, fields)
			}
		}
	}
}

func FuzzCSV(f *testing.F) {
	c := newCSV(f, ',', orderColumns...)
	for _, seed := range []string{"7,tea,2.5,true\r\n", ",,,", `1,"a ""b""",1,0`, "\"\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := c.Decode(raw)
		if err != nil {
			return
		}
		again, err := c.Append(nil, v)
		if err != nil {
			t.Fatalf("%q gives %v, which cannot be written: %v", raw, v, err)
		}
		w, err := c.Decode(again)
		if p, ok := v.(map[string]any)["price"].(float64); ok && math.IsNaN(p) {
			return // is not equal to itself
		}
		if err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("%q gives %v, written %q, read again %v, %v", raw, v, again, w, err)
		}
	})
}

func BenchmarkCSV(b *testing.B) {
	c := newCSV(b, ',', orderColumns...)
	benchCodec(b, c, []byte(`7,"tea, green",2.5,true`))
}

// benchCodec measures reading and writing one record.
func benchCodec(b *testing.B, c Codec, raw []byte) {
	v, err := c.Decode(raw)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Decode(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			if buf, err = c.Append(buf[:0], v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
