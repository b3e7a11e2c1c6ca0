package format

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/avro"
)

// wire puts a schema's id in front of data written in hex.
func wire(t testing.TB, id byte, data string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(data, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{0, 0, 0, 0, id}, b...)
}

// avroOf is a codec that reads and writes by one schema, with id 7.
func avroOf(t testing.TB, schema string) *Avro {
	t.Helper()
	return newAvro(t, newShelf().put(7, "s", avroText(schema)), &Target{Subject: "s"})
}

// TestAvroBytes holds bytes against those that the Avro specification gives, and values against the types of a schema.
func TestAvroBytes(t *testing.T) {
	for _, tt := range []struct {
		schema string
		value  any
		bytes  string
	}{
		{`"null"`, nil, ""},
		{`"boolean"`, true, "01"},
		{`"int"`, -64, "7f"},
		{`"int"`, 64, "8001"},
		{`"long"`, 9223372036854775807, "feffffffffffffffff01"},
		{`"long"`, -9223372036854775808, "ffffffffffffffffff01"},
		{`"float"`, 1.5, "0000c03f"},
		{`"double"`, -2.5, "00000000000004c0"},
		{`"string"`, "foo", "06 666f6f"},
		{`"bytes"`, "AAH/", "06 0001ff"},
		{`{"type":"record","name":"test","fields":[{"name":"a","type":"long"},{"name":"b","type":"string"}]}`, map[string]any{"a": 27, "b": "foo"}, "36 06 666f6f"},
		{`{"type":"enum","name":"Foo","symbols":["A","B","C","D"]}`, "D", "06"},
		{`{"type":"array","items":"long"}`, []any{3, 27}, "04 06 36 00"},
		{`{"type":"array","items":"long"}`, []any{}, "00"},
		{`{"type":"map","values":"long"}`, map[string]any{"b": 2, "a": 1}, "04 0261 02 0262 04 00"},
		{`["null","string"]`, nil, "00"},
		{`["null","string"]`, "a", "02 02 61"},
		{`["string","null"]`, nil, "02"},
		{`["long","string","double"]`, "7", "02 02 37"},
		{`["string","double","long"]`, 7, "04 0e"},
		{`["int","long"]`, 1 << 40, "02 808080808040"},
		{`{"type":"fixed","name":"F","size":3}`, "AAH/", "0001ff"},
		{`{"type":"bytes","logicalType":"decimal","precision":6,"scale":2}`, "-12.50", "04 fb1e"},
		{`{"type":"bytes","logicalType":"decimal","precision":6,"scale":2}`, "0.07", "02 07"},
		{`{"type":"bytes","logicalType":"decimal","precision":6,"scale":0}`, "-128", "02 80"},
		{`{"type":"fixed","name":"D","size":4,"logicalType":"decimal","precision":6,"scale":2}`, "-12.50", "fffffb1e"},
		{`{"type":"int","logicalType":"date"}`, "1970-01-03", "04"},
		{`{"type":"int","logicalType":"date"}`, "1969-12-31", "01"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, 1700000000123, "f6a1abfef962"},
		{`{"type":"string","logicalType":"uuid"}`, "67e55044-10b1-426f-9247-bb680e5fe0c8", "48" + hex.EncodeToString([]byte("67e55044-10b1-426f-9247-bb680e5fe0c8"))},
		{`{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`, "67e55044-10b1-426f-9247-bb680e5fe0c8", "67e5504410b1426f9247bb680e5fe0c8"},
		{`{"type":"record","name":"a.Node","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","Node"]}]}`,
			map[string]any{"v": 1, "next": map[string]any{"v": 2, "next": nil}}, "02 02 04 00"},
	} {
		c := avroOf(t, tt.schema)
		want := wire(t, 7, tt.bytes)
		got, err := c.Append(nil, tt.value)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v is written %x, %v; want %x", tt.schema, tt.value, got, err, want)
		}
		if v, err := c.Decode(want); err != nil || !reflect.DeepEqual(v, tt.value) {
			t.Errorf("%s: %x is read as %#v, %v; want %#v", tt.schema, want, v, err, tt.value)
		}
	}
}

const orderSchema = `{"type":"record","name":"Order","namespace":"shop","fields":[
	{"name":"id","type":"long"},
	{"name":"note","type":["null","string"]},
	{"name":"kind","type":{"type":"enum","name":"Kind","symbols":["NEW","PAID"]},"default":"NEW"},
	{"name":"total","type":{"type":"bytes","logicalType":"decimal","precision":6,"scale":2}},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"},"default":0},
	{"name":"items","type":{"type":"array","items":{"type":"record","name":"Item","fields":[{"name":"sku","type":"string"},{"name":"qty","type":"int"}]}},"default":[]},
	{"name":"tags","type":{"type":"map","values":"string"},"default":{}},
	{"name":"pay","type":["null",{"type":"record","name":"Card","fields":[{"name":"digits","type":"string"}]},{"type":"record","name":"Bank","fields":[{"name":"iban","type":"string"}]}],"default":null},
	{"name":"seal","type":["null",{"type":"fixed","name":"Seal","size":2}],"default":null}]}`

// TestAvroMismatch names the field in each error.
func TestAvroMismatch(t *testing.T) {
	c := avroOf(t, orderSchema)
	for _, tt := range []struct {
		field string
		value any
		want  string
	}{
		{"id", "7", `field id: want long, got the string "7"`},
		{"id", 7.5, `field id: want long, got the float 7.5`},
		{"id", nil, `field id: want long, got null`},
		{"note", 7, `field note: want string, got 7 (int)`},
		{"kind", "GONE", `field kind: want one of the symbols NEW, PAID, got the string "GONE"`},
		{"total", "1.234", `field total: 1.234 has more than 2 digits behind the point`},
		{"total", 12345.67, `field total: 12345.67 has 7 digits, with 2 behind the point; 6 fit`},
		{"total", "much", `field total: want a decimal number of 6 digits, 2 behind the point, got the string "much"`},
		{"at", "yesterday", `field at: want timestamp-millis, got the string "yesterday"`},
		{"items", []any{map[string]any{"sku": "a", "qty": 1}, map[string]any{"sku": "b", "qty": 1 << 31}}, `field items[1].qty: 2147483648 does not fit an int of 32 bits`},
		{"items", []any{map[string]any{"qty": 1}}, `field items[0].sku: it is missing, and the schema has no default for it`},
		{"items", "none", `field items: want array, got the string "none"`},
		{"tags", map[string]any{"a": 1}, `field tags.a: want string, got 1 (int)`},
		{"pay", map[string]any{"cash": true}, `field pay.digits: it is missing, and the schema has no default for it`},
		{"pay", 3, `field pay: want one of null, record shop.Card, record shop.Bank, got 3 (int)`},
		{"seal", "AAAA", `field seal: want fixed shop.Seal of 2 bytes, got 3`},
		{"nte", "x", `field nte: record shop.Order has no such field`},
	} {
		v := map[string]any{"id": 1, "total": "1.00"}
		v[tt.field] = tt.value
		_, err := c.Append(nil, v)
		wantError(t, err, "not of schema 7: "+tt.want, false)
	}
	_, err := c.Append(nil, "text")
	wantError(t, err, `not of schema 7: want record shop.Order, got the string "text"`, false)
}

// TestAvroDefaults writes what a value leaves out, and what reads differently from how it may be written.
func TestAvroDefaults(t *testing.T) {
	c := avroOf(t, orderSchema)
	for _, tt := range []struct{ in, want map[string]any }{
		{map[string]any{}, map[string]any{}},
		{map[string]any{"at": "2023-11-14T22:13:20.123Z", "total": 3}, map[string]any{"at": 1700000000123, "total": "3.00"}},
		{map[string]any{"pay": map[string]any{"iban": "DE"}}, map[string]any{"pay": map[string]any{"iban": "DE"}}},
		{map[string]any{"pay": map[string]any{"shop.Bank": map[string]any{"iban": "DE"}}}, map[string]any{"pay": map[string]any{"iban": "DE"}}},
	} {
		in := map[string]any{"id": 1.0, "total": 0.5}
		want := map[string]any{"id": 1, "note": nil, "kind": "NEW", "total": "0.50", "at": 0, "items": []any{}, "tags": map[string]any{}, "pay": nil, "seal": nil}
		for name, v := range tt.in {
			in[name] = v
		}
		for name, v := range tt.want {
			want[name] = v
		}
		raw, err := c.Append(nil, in)
		if err != nil {
			t.Errorf("%v: %v", tt.in, err)
			continue
		}
		if got, err := c.Decode(raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %v, %v; want %v", tt.in, got, err, want)
		}
	}
}

func TestAvroReferences(t *testing.T) {
	item := `{"type":"record","name":"shop.Item","fields":[{"name":"sku","type":"string"}]}`
	s := newShelf().put(7, "s", Schema{Type: AvroSchema, Text: `{"type":"record","name":"shop.Order","fields":[{"name":"items","type":{"type":"array","items":"Item"}}]}`,
		References: []Reference{{Name: "shop.Item", Text: item}}})
	c := newAvro(t, s, &Target{Subject: "s"})
	order := map[string]any{"items": []any{map[string]any{"sku": "a"}}}
	raw, err := c.Append(nil, order)
	if err != nil || string(raw) != string(wire(t, 7, "02 0261 00")) {
		t.Fatalf("got %x, %v", raw, err)
	}
	if v, err := c.Decode(raw); err != nil || !reflect.DeepEqual(v, order) {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestAvroDecodeErrors(t *testing.T) {
	c := avroOf(t, pointSchema)
	for data, want := range map[string]string{"": "not valid Avro of schema 7: ", "02": "not valid Avro of schema 7: ", "0204ff": "not valid Avro of schema 7: 1 bytes are left over"} {
		if v, err := c.Decode(wire(t, 7, data)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want %s", data, v, err, want)
		}
	}
}

// randomAvro makes a schema and a maker of its values, as expressions give them. Maps have one entry at most, as the library writes them
// in no order, and unions have branches that no value confuses.
func randomAvro(r *rand.Rand, depth int, names *int) (schema any, value func() any) {
	fresh := func() string { *names++; return fmt.Sprintf("T%d", *names) }
	kinds := 11
	if depth == 0 {
		kinds = 7
	}
	switch r.IntN(kinds) {
	case 0:
		return "boolean", func() any { return r.IntN(2) == 0 }
	case 1:
		return "int", func() any { return int(int32(r.Uint32())) >> r.IntN(32) }
	case 2:
		return "long", func() any { return int(r.Uint64()) >> r.IntN(64) }
	case 3:
		return "double", func() any { return r.NormFloat64() }
	case 4:
		return "string", func() any { return randomText(r) }
	case 5:
		return map[string]any{"type": "enum", "name": fresh(), "symbols": []string{"A", "B", "C"}}, func() any { return string("ABC"[r.IntN(3)]) }
	case 6:
		return map[string]any{"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}, func() any {
			return decimalText([]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}, 3)
		}
	case 7:
		items, item := randomAvro(r, depth-1, names)
		return map[string]any{"type": "array", "items": items}, func() any {
			list := []any{}
			for range r.IntN(4) {
				list = append(list, item())
			}
			return list
		}
	case 8:
		values, v := randomAvro(r, depth-1, names)
		return map[string]any{"type": "map", "values": values}, func() any {
			object := map[string]any{}
			if r.IntN(3) > 0 {
				object[randomText(r)] = v()
			}
			return object
		}
	case 9:
		branch, v := randomAvro(r, depth-1, names)
		if _, simple := branch.([]any); simple {
			return branch, v
		}
		return []any{"null", branch}, func() any {
			if r.IntN(2) == 0 {
				return nil
			}
			return v()
		}
	default:
		var fields []any
		var makers []func() any
		for i := range r.IntN(5) {
			typ, v := randomAvro(r, depth-1, names)
			fields, makers = append(fields, map[string]any{"name": fmt.Sprintf("f%d", i), "type": typ}), append(makers, v)
		}
		if fields == nil {
			fields = []any{}
		}
		return map[string]any{"type": "record", "name": fresh(), "fields": fields}, func() any {
			object := map[string]any{}
			for i, v := range makers {
				object[fmt.Sprintf("f%d", i)] = v()
			}
			return object
		}
	}
}

// TestAvroAgainstLibrary writes random values of random schemas with the codec and with the library: the bytes are equal, and read
// as what was written.
func TestAvroAgainstLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 400 {
		names := 0
		schema, value := randomAvro(r, 4, &names)
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		c, library := avroOf(t, string(text)), avro.MustParse(string(text))
		for range 10 {
			v := value()
			own, err := c.Append(nil, v)
			if err != nil {
				t.Fatalf("%s: %v: %v", text, v, err)
			}
			other, err := library.AppendEncode([]byte{0, 0, 0, 0, 7}, v)
			if err != nil || string(own) != string(other) {
				t.Fatalf("%s: %v is written %x, but by the library %x, %v", text, v, own, other, err)
			}
			if again, err := c.Decode(own); err != nil || !reflect.DeepEqual(again, v) {
				t.Fatalf("%s: %#v is read again as %#v, %v", text, v, again, err)
			}
		}
	}
}

// FuzzAvro reads any bytes. What can be read can be written, and is then read as the same.
func FuzzAvro(f *testing.F) {
	c := avroOf(f, orderSchema)
	raw, err := c.Append(nil, map[string]any{"id": 1, "total": "1.25", "items": []any{map[string]any{"sku": "a", "qty": 1}}, "pay": map[string]any{"iban": "DE"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(wire(f, 7, "0202c3"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := c.Decode(raw)
		if err != nil {
			return
		}
		again, err := c.Append(nil, v)
		if err != nil {
			if strings.Contains(err.Error(), "digits") {
				return // readers do not look at the precision
			}
			t.Fatalf("%x gives %v, which cannot be written: %v", raw, v, err)
		}
		if w, err := c.Decode(again); err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("%x gives %v, written %x, read again %v, %v", raw, v, again, w, err)
		}
	})
}

func BenchmarkAvro(b *testing.B) {
	c := avroOf(b, orderSchema)
	raw, err := c.Append(nil, map[string]any{"id": 1, "note": "hello", "total": "1.25", "at": 1700000000123,
		"items": []any{map[string]any{"sku": "a", "qty": 1}, map[string]any{"sku": "b", "qty": 2}}, "pay": map[string]any{"iban": "DE"}})
	if err != nil {
		b.Fatal(err)
	}
	benchCodec(b, c, raw)
}

// TestAvroBombs reads little data that claims to be much.
func TestAvroBombs(t *testing.T) {
	const nodes = `{"type":"record","name":"Node","fields":[{"name":"next","type":["null","Node"]}]}`
	for _, tt := range []struct{ schema, data string }{
		{`{"type":"array","items":"null"}`, "feffffffffffffffff01"},
		{`{"type":"array","items":"long"}`, "feffffffff0f02"},
		{`{"type":"array","items":{"type":"record","name":"E","fields":[]}}`, "feffffffffffffffff01"},
		{`{"type":"map","values":"null"}`, "feffffffff0f02"},
		{`"bytes"`, "feffffffff0f02"},
		{`"string"`, "01"},
		{nodes, strings.Repeat("02", 200000)},
	} {
		if v, err := avroOf(t, tt.schema).Decode(wire(t, 7, tt.data)); err == nil {
			t.Errorf("%s: %.20s is read as %.100v", tt.schema, tt.data, v)
		}
	}
}
