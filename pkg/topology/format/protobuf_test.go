package format

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

func protoText(text string) Schema { return Schema{Type: ProtobufSchema, Text: text} }

// protobufOf is a codec that reads and writes by one schema, with id 7.
func protobufOf(t testing.TB, schema, message string) *Protobuf {
	t.Helper()
	p, err := NewProtobuf(newShelf().put(7, "s", protoText(schema)), &Target{Subject: "s", Message: message})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const testProto = `syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
import "google/protobuf/empty.proto";

message First { int32 a = 1; }

message All {
  int32 i32 = 1; sint32 s32 = 2; sfixed32 sf32 = 3;
  int64 i64 = 4; sint64 s64 = 5; sfixed64 sf64 = 6;
  uint32 u32 = 7; fixed32 f32 = 8; uint64 u64 = 9; fixed64 f64 = 10;
  bool yes = 11; float flt = 12; double dbl = 13; string text = 14; bytes data = 15;
  enum Kind { NONE = 0; SOME = 1; }
  Kind kind = 16;
  repeated int64 numbers = 17;
  repeated Kind kinds = 18;
  map<string, int64> counts = 19;
  map<int32, Sub> subs = 20;
  map<bool, string> flags = 21;
  map<uint64, string> ids = 22;
  message Sub { string name = 1; All parent = 2; message Deep { int32 a = 1; } }
  Sub sub = 23;
  optional int32 maybe = 24;
  oneof choice { string word = 25; Sub thing = 26; int64 number = 27; }
  google.protobuf.Timestamp at = 30;
  google.protobuf.Duration took = 31;
  google.protobuf.Int64Value boxed = 32;
  google.protobuf.StringValue label = 33;
  google.protobuf.Struct more = 34;
  google.protobuf.Value value = 35;
  google.protobuf.Any any = 36;
  google.protobuf.Empty empty = 37;
  repeated google.protobuf.Timestamp times = 38;
}
`

// TestProtobufBytes holds bytes against those that the Protobuf encoding guide gives, in the frame with the place of the message.
func TestProtobufBytes(t *testing.T) {
	const schema = `syntax = "proto3"; package p;
		message Test1 { int32 a = 1; message In { string b = 2; message Deep { repeated int32 e = 6; } } }
		message Test2 { string b = 2; Test1 c = 3; }
		message Test3 { map<string, int32> m = 1; message In { int32 a = 1; } }`
	for _, tt := range []struct {
		message string
		value   any
		bytes   string
	}{
		{"", map[string]any{"a": 150}, "00 08 9601"},
		{"p.Test1", map[string]any{"a": -1}, "00 08 ffffffffffffffffff01"},
		{"Test2", map[string]any{"b": "testing", "c": map[string]any{"a": 150}}, "02 02 12 07 74657374696e67 1a 03 08 9601"},
		{"Test1.In", map[string]any{"b": "a"}, "04 00 00 12 01 61"},
		{"Test3.In", map[string]any{"a": 1}, "04 04 00 08 01"}, // what a map is made of has no place
		{"p.Test1.In.Deep", map[string]any{"e": []any{3, 270, 86942}}, "06 00 00 00 32 06 03 8e02 9ea705"},
	} {
		p, want := protobufOf(t, schema, tt.message), wire(t, 7, tt.bytes)
		got, err := p.Append(nil, tt.value)
		if err != nil || string(got) != string(want) {
			t.Errorf("%v is written %x, %v; want %x", tt.value, got, err, want)
		}
		if v, err := p.Decode(want); err != nil || !reflect.DeepEqual(v, tt.value) {
			t.Errorf("%x is read as %v, %v; want %v", want, v, err, tt.value)
		}
	}
	if v, err := protobufOf(t, schema, "").Decode(wire(t, 7, "02 00 08 9601")); err != nil || !reflect.DeepEqual(v, map[string]any{"a": 150}) {
		t.Errorf("the first message by its place written out is read as %v, %v", v, err)
	}
}

// TestProtobufValues writes each field and reads it again.
func TestProtobufValues(t *testing.T) {
	p := protobufOf(t, testProto, "All")
	empty, err := p.Decode(wire(t, 7, "02 02"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"i32": 0, "s32": 0, "sf32": 0, "i64": 0, "s64": 0, "sf64": 0, "u32": 0, "f32": 0, "u64": 0, "f64": 0, "yes": false, "flt": 0.0, "dbl": 0.0,
		"text": "", "data": "", "kind": "NONE", "numbers": []any{}, "kinds": []any{}, "counts": map[string]any{}, "subs": map[string]any{}, "flags": map[string]any{},
		"ids": map[string]any{}, "sub": nil, "maybe": nil, "word": nil, "thing": nil, "number": nil, "at": nil, "took": nil, "boxed": nil, "label": nil,
		"more": nil, "value": nil, "any": nil, "empty": nil, "times": []any{},
	}
	if !reflect.DeepEqual(empty, want) {
		t.Fatalf("an empty message is %v, want %v", empty, want)
	}
	sub := map[string]any{"name": "x", "parent": nil}
	for _, tt := range []struct {
		field    string
		in, want any
	}{
		{"i32", math.MinInt32, math.MinInt32},
		{"i64", math.MaxInt64, math.MaxInt64},
		{"s64", math.MinInt64, math.MinInt64},
		{"sf64", 3.0, 3},
		{"u32", math.MaxUint32, math.MaxUint32},
		{"u64", math.MaxInt64, math.MaxInt64},
		{"u64", "18446744073709551615", "18446744073709551615"},
		{"f64", "9223372036854775808", "9223372036854775808"},
		{"flt", 1.5, 1.5},
		{"flt", 2, 2.0},
		{"dbl", math.Inf(1), math.Inf(1)},
		{"text", "é", "é"},
		{"data", "AAH/", "AAH/"},
		{"data", []byte{1}, "AQ=="},
		{"kind", "SOME", "SOME"},
		{"kind", 1, "SOME"},
		{"kind", 5, 5},
		{"kinds", []any{"SOME", "NONE"}, []any{"SOME", "NONE"}},
		{"counts", map[string]any{"a": 1}, map[string]any{"a": 1}},
		{"subs", map[string]any{"-1": map[string]any{"name": "x"}}, map[string]any{"-1": sub}},
		{"flags", map[string]any{"true": "t", "false": "f"}, map[string]any{"true": "t", "false": "f"}},
		{"ids", map[string]any{"18446744073709551615": "t"}, map[string]any{"18446744073709551615": "t"}},
		{"sub", map[string]any{"name": "x"}, sub},
		{"maybe", 0, 0},
		{"word", "", ""},
		{"thing", map[string]any{"name": "x"}, sub},
		{"number", 7, 7},
		{"at", "2024-01-31T12:00:00.5Z", "2024-01-31T12:00:00.5Z"},
		{"at", "2024-01-31T13:00:00+01:00", "2024-01-31T12:00:00Z"},
		{"took", "1.500s", "1.500s"},
		{"boxed", 0, 0},
		{"label", "", ""},
		{"more", map[string]any{"a": []any{1.5, "x", nil, true}}, map[string]any{"a": []any{1.5, "x", nil, true}}},
		{"value", "x", "x"},
		{"any", map[string]any{"type_url": "t/x", "value": "AQ=="}, map[string]any{"type_url": "t/x", "value": "AQ=="}},
		{"empty", map[string]any{}, map[string]any{}},
		{"times", []any{"2024-01-31T12:00:00Z"}, []any{"2024-01-31T12:00:00Z"}},
	} {
		raw, err := p.Append(nil, map[string]any{tt.field: tt.in})
		if err != nil {
			t.Errorf("%s %v: %v", tt.field, tt.in, err)
			continue
		}
		v, err := p.Decode(raw)
		if err != nil || !reflect.DeepEqual(v.(map[string]any)[tt.field], tt.want) {
			t.Errorf("%s: %v is read again as %#v, %v; want %#v", tt.field, tt.in, v.(map[string]any)[tt.field], err, tt.want)
		}
	}
}

// TestProtobufMismatch names the field in each error.
func TestProtobufMismatch(t *testing.T) {
	p := protobufOf(t, testProto, "All")
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"text", `want message test.All, got the string "text"`},
		{map[string]any{"i33": 1}, "field i33: message test.All has no such field"},
		{map[string]any{"i32": 1 << 31}, "field i32: 2147483648 does not fit int32"},
		{map[string]any{"i64": 1.5}, "field i64: want int64, got the float 1.5"},
		{map[string]any{"i64": "1"}, `field i64: want int64, got the string "1"`},
		{map[string]any{"u32": -1}, "field u32: -1 does not fit uint32"},
		{map[string]any{"u32": 1 << 32}, "field u32: 4294967296 does not fit uint32"},
		{map[string]any{"u64": "18446744073709551616"}, `field u64: want uint64, got the string "18446744073709551616"`},
		{map[string]any{"flt": 1e300}, "field flt: 1e+300 does not fit a float of 32 bits"},
		{map[string]any{"text": 1}, "field text: want string, got 1 (int)"},
		{map[string]any{"text": "\xff"}, "field text: a string must be UTF-8"},
		{map[string]any{"data": "?"}, `field data: want bytes, as base64, got the string "?"`},
		{map[string]any{"yes": 1}, "field yes: want bool, got 1 (int)"},
		{map[string]any{"kind": "MANY"}, `field kind: want a symbol of enum test.All.Kind, got the string "MANY"`},
		{map[string]any{"numbers": []any{1, "2"}}, `field numbers[1]: want int64, got the string "2"`},
		{map[string]any{"numbers": 1}, "field numbers: want a list, got 1 (int)"},
		{map[string]any{"counts": map[string]any{"a": "b"}}, `field counts.a: want int64, got the string "b"`},
		{map[string]any{"subs": map[string]any{"a": map[string]any{}}}, `field subs.a: want a key of type int32, got the string "a"`},
		{map[string]any{"subs": map[string]any{"1": map[string]any{"name": 1}}}, "field subs.1.name: want string, got 1 (int)"},
		{map[string]any{"sub": map[string]any{"parent": map[string]any{"text": 1}}}, "field sub.parent.text: want string, got 1 (int)"},
		{map[string]any{"number": 1, "word": "a"}, "field word: number is there too, and oneof choice takes one of them"},
		{map[string]any{"at": 1700000000000}, "field at: want a timestamp as text, e.g. 2024-01-31T12:00:00Z, got 1700000000000 (int)"},
		{map[string]any{"took": "soon"}, `field took: want what google.protobuf.Duration is in JSON, got the string "soon"`},
		{map[string]any{"times": []any{nil}}, "field times[0]: want a timestamp as text, e.g. 2024-01-31T12:00:00Z, got null"},
	} {
		_, err := p.Append(nil, tt.value)
		wantError(t, err, "not of schema 7: "+tt.want, false)
	}
	_, err := protobufOf(t, `syntax = "proto2"; message M { required string a = 1; }`, "").Append(nil, map[string]any{})
	wantError(t, err, "not of schema 7: field a: it is missing, and the schema requires it", false)
}

func TestProtobufDecodeErrors(t *testing.T) {
	p := protobufOf(t, testProto, "All")
	for _, tt := range []struct{ data, want string }{
		{"", "behind the id of a schema there is no place of a message in it"},
		{"feffffff0f", "behind the id of a schema there is no place of a message in it"},
		{"0204", "schema 7 has no message at [2]"},
		{"0201", "schema 7 has no message at [-1]"},
		{"040202", "schema 7 has no message at [1 1]"},
		{"0202 f2 01 0a 08 ffffffffffffffff7f", "not valid Protobuf of schema 7, message test.All: field at: a timestamp out of range"},
	} {
		_, err := p.Decode(wire(t, 7, tt.data))
		wantError(t, err, tt.want, false)
	}
	if _, err := p.Decode(wire(t, 7, "0202 08")); err == nil || !strings.HasPrefix(err.Error(), "not valid Protobuf of schema 7, message test.All: proto: ") || strings.Contains(err.Error(), "\u00a0") {
		t.Errorf("a message that is cut off: %v", err)
	}
}

func TestProtobufSchemas(t *testing.T) {
	for _, tt := range []struct{ schema, message, want string }{
		{`syntax = "proto3";`, "", "a schema without a message"},
		{`syntax = "proto3"; message A {}`, "B", "a schema without the message B"},
		{`syntax = "proto3"; message A { B b = 1; }`, "", "no valid Protobuf schema: <schema>.proto:1:32: field A.b: unknown type B"},
		{`syntax = "proto3"; import "other.proto";`, "", `no valid Protobuf schema: <schema>.proto:1:27: could not resolve path "other.proto"`},
	} {
		_, err := NewProtobuf(newShelf(), &Target{Subject: "s", Schema: tt.schema, Message: tt.message})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.schema, err, tt.want)
		}
	}
	// Records are read whatever message is written.
	s := newShelf().put(7, "s", protoText(`syntax = "proto3"; message A { int32 a = 1; }`)).put(8, "s", protoText(`syntax = "proto3"; message B { int32 a = 1; }`))
	p, err := NewProtobuf(s, &Target{Subject: "s", Message: "B"})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Decode(wire(t, 7, "00 08 9601")); err != nil || !reflect.DeepEqual(v, map[string]any{"a": 150}) {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestProtobufMapsWrittenOut reads a schema as some serializers register it: with the messages that maps are made of, which have a place
// in the frame then.
func TestProtobufMapsWrittenOut(t *testing.T) {
	p := protobufOf(t, `syntax = "proto3"; message M { repeated PagesEntry pages = 5; message PagesEntry { option map_entry = true; string key = 1; int64 value = 2; }
		message In { int32 a = 1; } }`, "M.In")
	raw, err := p.Append(nil, map[string]any{"a": 150})
	if want := wire(t, 7, "04 00 02 08 9601"); err != nil || string(raw) != string(want) {
		t.Errorf("got %x, %v; want %x", raw, err, want)
	}
	v, err := p.Decode(wire(t, 7, "00 2a 05 0a 01 61 10 02"))
	if want := map[string]any{"pages": map[string]any{"a": 2}}; err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("got %v, %v; want %v", v, err, want)
	}
}

func TestProtobufReferences(t *testing.T) {
	s := newShelf().put(7, "s", Schema{Type: ProtobufSchema, Text: `syntax = "proto3"; package shop; import "shop/item.proto"; message Order { repeated Item items = 1; }`,
		References: []Reference{
			{"shop/unit.proto", `syntax = "proto3"; package shop; message Unit { string name = 1; }`},
			{"shop/item.proto", `syntax = "proto3"; package shop; import "shop/unit.proto"; message Item { string sku = 1; Unit unit = 2; }`},
		}})
	p, err := NewProtobuf(s, &Target{Subject: "s"})
	if err != nil {
		t.Fatal(err)
	}
	order := map[string]any{"items": []any{map[string]any{"sku": "a", "unit": map[string]any{"name": "kg"}}}}
	raw, err := p.Append(nil, order)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Decode(raw); err != nil || !reflect.DeepEqual(v, order) {
		t.Errorf("got %v, %v", v, err)
	}
}

// randomAll makes a value of message All, as expressions give it.
func randomAll(r *rand.Rand, depth int) map[string]any {
	v := make(map[string]any)
	number := func() any { return int(r.Uint64()) >> r.IntN(64) }
	small := func() any { return int(int32(r.Uint32())) >> r.IntN(32) }
	sub := func() any {
		s := map[string]any{"name": randomText(r)}
		if depth > 0 && r.IntN(2) == 0 {
			s["parent"] = randomAll(r, depth-1)
		}
		return s
	}
	data := func() any { return base64.StdEncoding.EncodeToString([]byte(randomText(r))) }
	maybe := func(name string, make func() any) {
		if r.IntN(3) == 0 {
			v[name] = make()
		}
	}
	for _, name := range []string{"i32", "s32", "sf32", "maybe"} {
		maybe(name, small)
	}
	for _, name := range []string{"i64", "s64", "sf64", "boxed"} {
		maybe(name, number)
	}
	for _, name := range []string{"u32", "f32"} {
		maybe(name, func() any { return int(r.Uint32()) })
	}
	for _, name := range []string{"u64", "f64"} {
		maybe(name, func() any { return int(r.Uint64() >> 1) })
	}
	maybe("yes", func() any { return true })
	maybe("flt", func() any { return float64(float32(r.NormFloat64())) })
	maybe("dbl", func() any { return r.NormFloat64() })
	maybe("text", func() any { return randomText(r) })
	maybe("label", func() any { return randomText(r) })
	maybe("data", data)
	maybe("kind", func() any { return "SOME" })
	maybe("numbers", func() any { return []any{number(), number()} })
	maybe("counts", func() any { return map[string]any{randomText(r): number(), "x": number()} })
	maybe("subs", func() any { return map[string]any{"-7": sub(), "7": sub()} })
	maybe("sub", sub)
	maybe("more", func() any { return map[string]any{randomText(r): r.NormFloat64(), "x": []any{"y", nil, false}} })
	maybe("took", func() any { return "1.500s" })
	maybe("times", func() any { return []any{"2024-01-31T12:00:00Z", "1999-12-31T23:59:59.123456789Z"} })
	switch r.IntN(4) {
	case 0:
		v["word"] = randomText(r)
	case 1:
		v["thing"] = sub()
	case 2:
		v["number"] = number()
	}
	return v
}

// TestProtobufAgainstLibrary writes random messages with the codec, and with the library's own JSON mapping: the bytes are equal, and
// what is read from them is written as the same again.
func TestProtobufAgainstLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	p := protobufOf(t, testProto, "All")
	w, err := p.forWriting()
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		v := randomAll(r, 2)
		own, err := p.Append(nil, v)
		if err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		m := dynamicpb.NewMessage(w.schema.write)
		if err := protojson.Unmarshal(text, m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		other, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{0, 0, 0, 0, 7, 2, 2}, m)
		if err != nil || string(own) != string(other) {
			t.Fatalf("%s is written %x, but by the library %x, %v", text, own, other, err)
		}
		read, err := p.Decode(own)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := p.Append(nil, read); err != nil || string(again) != string(own) {
			t.Fatalf("%s is read as %v and written again %x, %v", text, read, again, err)
		}
	}
}

// FuzzProtobuf reads any bytes. What can be read can be written, and is then read as the same.
func FuzzProtobuf(f *testing.F) {
	p := protobufOf(f, testProto, "All")
	r := rand.New(rand.NewPCG(4, 4))
	for range 10 {
		raw, err := p.Append(nil, randomAll(r, 1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := p.Decode(raw)
		if err != nil {
			return
		}
		if len(raw) < 7 || string(raw[5:7]) != "\x02\x02" {
			return // another message
		}
		again, err := p.Append(nil, v)
		if err != nil {
			t.Fatalf("%x gives %v, which cannot be written: %v", raw, v, err)
		}
		if w, err := p.Decode(again); err != nil || Describe(v) != Describe(w) {
			t.Fatalf("%x gives %v, written %x, read again %v, %v", raw, v, again, w, err)
		}
	})
}

func BenchmarkProtobuf(b *testing.B) {
	p := protobufOf(b, `syntax = "proto3"; import "google/protobuf/timestamp.proto";
		message Order { int64 id = 1; optional string note = 2; enum Kind { NEW = 0; PAID = 1; } Kind kind = 3; string total = 4; google.protobuf.Timestamp at = 5;
			message Item { string sku = 1; int32 qty = 2; } repeated Item items = 6; map<string, string> tags = 7; oneof pay { string card = 8; string iban = 9; } }`, "")
	raw, err := p.Append(nil, map[string]any{"id": 1, "note": "hello", "total": "1.25", "at": "2023-11-14T22:13:20.123Z",
		"items": []any{map[string]any{"sku": "a", "qty": 1}, map[string]any{"sku": "b", "qty": 2}}, "iban": "DE"})
	if err != nil {
		b.Fatal(err)
	}
	benchCodec(b, p, raw)
}
