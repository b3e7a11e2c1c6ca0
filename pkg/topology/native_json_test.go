package topology

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// jsonGen writes random expressions over fields of JSON, and random JSON for them.
type jsonGen struct{ exprGen }

func (g jsonGen) expr(depth int) string {
	if depth == 0 {
		return g.pick("value.a", "value.b", "value.c.d", `value["é"]`, "value.none", "value.c", "value.l", "timestamp", "key", "nil", "true", `"a"`, "2", "0.5", "-3", "value.l[0]")
	}
	one := func() string { return g.expr(g.r.IntN(depth)) }
	switch g.r.IntN(9) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", one(), g.pick("+", "-", "*", "/", "%", "??"), one())
	case 2, 3:
		return fmt.Sprintf("(%s %s %s)", one(), g.pick("==", "!=", "<", "<=", ">", ">=", "contains", "in"), one())
	case 4:
		return fmt.Sprintf("(%s %s %s)", one(), g.pick("and", "or", "&&", "||"), one())
	case 5:
		return fmt.Sprintf("%s(%s)", g.pick("int", "float", "string", "lower", "upper", "trim", "len", "not ", "-"), one())
	case 6:
		return fmt.Sprintf("(%s ? %s : %s)", one(), one(), one())
	case 7:
		return fmt.Sprintf("[%s, %s]", one(), one())
	default:
		return fmt.Sprintf(`{"z": %s, %s: %s, "m": %s}`, one(), g.pick(`"a"`, `"\n"`, `"z"`, "(key)"), one(), one())
	}
}

func (g jsonGen) json(depth int) string {
	if depth == 0 {
		return g.pick("1", "-2", "0", "2.5", "3.0", "-0", "1e3", "1e-9", "9223372036854775807", "9223372036854775808", `"a"`, `"A b"`, `"é\n"`, `"12"`, `"\ud800"`, "true", "false", "null", "{}", "[]")
	}
	switch g.r.IntN(4) {
	case 0:
		return g.json(0)
	case 1:
		return "[" + g.json(depth-1) + ", " + g.json(0) + "]"
	default:
		var fields []string
		for range g.r.IntN(6) {
			fields = append(fields, g.pick(`"a"`, `"b"`, `"c"`, `"d"`, `"l"`, `"é"`, `"\u0061"`)+": "+g.json(g.r.IntN(depth)))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
}

const fieldsJob = `
streams:
  - name: s
    from: {topic: in, value: json}
    steps:
      - %s: |-
          %s
      - to: {topic: out, value: json}
`

// tryParse is parse where expressions may be wrong.
func tryParse(src string) (*Topology, error) {
	f := yamlnode.Parse("test.yaml", []byte(src), nil)
	m := f.Root().Map()
	top := Definition{App: "app", Tables: m.Get("tables"), Streams: m.Get("streams")}.Parse()
	return top, f.Err()
}

// leaveToLibrary makes the library evaluate the expressions of a fieldsJob, over values that are decoded at once. It reports
// whether one of them would have been computed.
func leaveToLibrary(top *Topology) bool {
	seg := top.Subtopologies[0].segments[0]
	e := new(expression)
	switch s := seg.steps[0].(type) {
	case *filterStep:
		e = s.cond
	case *mapStep:
		e = s.value
	}
	computed := e.native.computed != nil
	e.native = native{}
	seg.uses = seg.uses&^usesFields | e.uses&usesValue
	return computed
}

// outcome is what processing a record gives.
func outcome(t *testing.T, top *Topology, rec *kgo.Record) string {
	var out collected
	p, err := top.Subtopologies[0].NewProcessor(nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Process(0, []*kgo.Record{rec}); err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, r := range out {
		fmt.Fprintf(&b, "%q %q %v\n", r.Key, r.Value, r.Value == nil)
	}
	return b.String()
}

type collected []*kgo.Record

func (c *collected) Emit(r *kgo.Record) { *c = append(*c, r) }

// TestFieldsAgree lets a random filter or map process random JSON, computed by field, and by the library with all of the value
// decoded: outputs and errors are the same.
func TestFieldsAgree(t *testing.T) {
	g := jsonGen{exprGen{r: rand.New(rand.NewPCG(3, 4))}}
	covered, passed := 0, 0
	for range 2000 {
		text := g.expr(1 + g.r.IntN(3))
		src := fmt.Sprintf(fieldsJob, g.pick("map", "filter"), text)
		byField, err := tryParse(src)
		if err != nil {
			continue // types do not fit
		}
		atOnce, err := tryParse(src)
		if err != nil {
			t.Fatal(err)
		}
		if !leaveToLibrary(atOnce) {
			continue
		}
		covered++
		for range 6 {
			value := g.json(3)
			rec := &kgo.Record{Topic: "in", Key: []byte(g.pick("a", "", "é")), Value: []byte(value), Timestamp: time.UnixMilli(g.r.Int64N(3))}
			got, want := outcome(t, byField, rec), outcome(t, atOnce, rec)
			if got != want {
				t.Fatalf("%s of %s:\n%s\nby the library:\n%s", text, value, got, want)
			}
			if !strings.HasPrefix(want, "error") {
				passed++
			}
		}
	}
	if covered < 400 || passed < 500 {
		t.Errorf("only %d expressions were computed, and %d records processed without an error", covered, passed)
	}
}
