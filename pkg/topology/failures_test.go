package topology

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestFailures has, for each way in which a record can fail, the message that is shown, and what each policy makes of it: fail stops before
// the record, skip counts it, dead_letter writes it to the dead letter topic with the message. Stores are as before in all cases.
func TestFailures(t *testing.T) {
	const toJSON = "to: {topic: out, value: json}"
	for _, tt := range []struct {
		what, formats, steps string
		value                string
		want                 string
	}{
		{"a format", "value: json", toJSON, `{"a":`, "value: not valid JSON: it ends too early"},
		{"a format", "value: int", "to: {topic: out, value: int}", "1234", "value: format int has 8 bytes, got 4"},
		{"a format", "value: {format: csv, columns: {a: int}}", toJSON, "x", `value: column a: the string "x" is no int of 64 bits`},
		{"a conversion", "value: string", "map: int(value), " + toJSON, "12a", `expression int(value): the string "12a" is no whole number of 64 bits`},
		{"a conversion", "value: json", "map: int(value), " + toJSON, "[1]", "expression int(value): int() wants a number or text, got the list [1]"},
		{"a conversion", "value: json", "map: float(value.a), " + toJSON, `{"a":"x"}`, "expression float(value.a): invalid operation: float(x)"},
		{"an operator", "value: json", "map: value.a + 1, " + toJSON, `{"a":"x"}`, "expression value.a + 1: invalid operation: string + int"},
		{"an operator", "value: json", "filter: value.a > 1, " + toJSON, `{"a":true}`, "expression value.a > 1: invalid operation: bool > int"},
		{"an unknown field", "value: json", "map: value.b + 1, " + toJSON, `{"a":1}`, "expression value.b + 1: invalid operation: <nil> + int"},
		{"an unknown field", "value: json", "map: value.b.c, " + toJSON, `{"a":1}`, "expression value.b.c: cannot fetch c from <nil>"},
		{"a field of no object", "value: json", "map: value.b, " + toJSON, `7`, "expression value.b: cannot fetch b from int"},
		{"an index", "value: json", "map: 'value[2]', " + toJSON, `[1]`, "expression value[2]: index out of range: 2 (array length is 1)"},
		{"an argument", "value: json", "map: lower(value), " + toJSON, `7`, "expression lower(value): it is int, not string"},
		{"a null", "value: json", "map: value.a, " + toJSON, `null`, "expression value.a: value is null: cannot fetch a from <nil>"},
		{"no condition", "value: json", "filter: value.a, " + toJSON, `{"a":7}`, "expression value.a: want true or false, got 7 (int)"},
		{"no list", "value: json", "flat_map: value.a, " + toJSON, `{"a":7}`, "expression value.a: want a list, got 7 (int)"},
		{"an element", "value: json", "flat_map: value, map: 10 % value, " + toJSON, `[0]`, "expression 10 % value: runtime error: integer divide by zero"},
		{"division by zero", "value: string", "map: 10 % int(value), " + toJSON, "0", "expression 10 % int(value): runtime error: integer divide by zero"},
		{"division by zero", "value: string", "map: 10 / int(value), " + toJSON, "0", "value for topic out: cannot be written as JSON: the number +Inf has no JSON form"},
		{"overflow", "value: string", "map: int(value), " + toJSON, "9223372036854775808", `expression int(value): the string "9223372036854775808" is no whole number of 64 bits`},
		{"overflow", "value: json", toJSON + ", map: value.a, " + toJSON, `{"a":1e999}`, "value: not valid JSON: the number 1e999 is too large"},
		{"overflow of a sum", "value: string", "sum: int(value), to: {topic: out, value: int}", "9223372036854775807", "sum of 9223372036854775807 and 9223372036854775807 does not fit 64 bits"},
		{"too much memory", "value: string", "map: 'repeat(value, 10000000)', " + toJSON, "abc", "expression repeat(value, 10000000): memory budget exceeded"},
		{"a value for a topic", "value: json", "map: value.a, to: out", `{"a":7}`, "value for topic out: want string, got 7 (int)"},
		{"a key for a topic", "value: json", "rekey: value.a, to: {topic: out, key: int, value: json}", `{"a":7.5}`, "key for topic out: want int, got the float 7.5"},
		{"a value for a column", "value: json", "to: {topic: out, value: {format: csv, columns: {a: int}}}", `{"a":"x"}`, `value for topic out: column a: want int, got the string "x"`},
		{"a field without a column", "value: json", "to: {topic: out, value: {format: csv, columns: {a: int}}}", `{"b":1}`, `value for topic out: there is no column "b"`},
		{"a comparison", "value: json", "max: value.a, " + toJSON, `{"a":[1]}`, "cannot compare the list [1] with the list [1]: want numbers or strings"},
		{"a reduce", "value: json", "reduce: acc.a + value.a, " + toJSON, `{"a":null}`, "expression acc.a + value.a: invalid operation: <nil> + <nil>"},
	} {
		for _, policy := range []Policy{Stop, Skip, DeadLetter} {
			a := newApp(t, "streams:\n  - {name: s, from: {topic: in, "+tt.formats+", on_error: "+string(policy)+"}, steps: ["+tt.steps+"]}")
			rec := &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte(tt.value)}
			if strings.Contains(tt.want, "sum of") || strings.Contains(tt.want, "compare") || strings.Contains(tt.want, "acc") { // the second such record fails
				if _, err := a.feed(rec); err != nil {
					t.Fatalf("%s: %v", tt.what, err)
				}
			}
			before, counters := snapshot(a), a.procs[0].Counters
			out, err := a.feed(rec)
			if after := snapshot(a); after != before {
				t.Errorf("%s under %s: stores were %s and are %s", tt.what, policy, before, after)
			}
			c := a.procs[0].Counters
			switch policy {
			case Stop:
				var bad *RecordError
				if !errors.As(err, &bad) || bad.Err.Error() != tt.want || len(out) > 0 || c != counters {
					t.Errorf("%s: %s\ngot  %v, %v\nwant %s", tt.what, tt.steps, out, err, tt.want)
				}
			case Skip:
				if err != nil || len(out) > 0 || c.Skipped != counters.Skipped+1 {
					t.Errorf("%s under %s: got %v, %v, %+v", tt.what, policy, out, err, c)
				}
			case DeadLetter:
				if err != nil || len(out) != 1 || string(out[0].Value) != tt.value || string(out[0].Headers[0].Value) != tt.want || c.DeadLettered != counters.DeadLettered+1 {
					t.Errorf("%s under %s: got %v, %v, %+v", tt.what, policy, out, err, c)
				}
			}
		}
	}
}

// TestArithmetic holds what is no error: whole numbers wrap around in expressions, and floats have infinities.
func TestArithmetic(t *testing.T) {
	for _, tt := range []struct {
		expr string
		want any
	}{
		{"9223372036854775807 + len(value)", math.MinInt64},
		{"9223372036854775807 * 3 * len(value)", math.MaxInt64 - 2},
		{"len(value) / 0", math.Inf(1)},
		{"7 / 2 * len(value)", 3.5},
		{"-7 % 3 * len(value)", -1},
		{"int(1e300 * len(value))", math.MaxInt64},
		{"int(-1e300 * len(value))", math.MinInt64},
		{"int(-2.9 * len(value))", -2},
		{"int(0.0 / (len(value) - 1))", 0},
		{"int(duration('2us')) * len(value)", 2000},
		{"int(9223372036854775807.0 * len(value))", math.MaxInt64},
	} {
		format := "int"
		if _, ok := tt.want.(float64); ok {
			format = "float"
		}
		a := newApp(t, "streams:\n  - {name: s, from: in, steps: [map: \""+tt.expr+"\", to: {topic: out, value: "+format+"}]}")
		out, err := a.feed(&kgo.Record{Topic: "in", Value: []byte("x")})
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		f := Int
		if format == "float" {
			f = Float
		}
		if got, err := f.Decode(out[0].Value); err != nil || got != tt.want {
			t.Errorf("%s gives %v, %v; want %v", tt.expr, got, err, tt.want)
		}
	}
}
