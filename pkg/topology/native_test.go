package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// exprGen writes random expressions of what native covers, and some of what it does not.
type exprGen struct{ r *rand.Rand }

func (g exprGen) pick(s ...string) string { return s[g.r.IntN(len(s))] }

func (g exprGen) text(depth int) string {
	if depth == 0 {
		return g.pick(`key`, `value`, `"a"`, `""`, `"A b"`, `"  é "`)
	}
	switch g.r.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s + %s)", g.text(depth-1), g.text(depth-1))
	case 1, 2, 3:
		return fmt.Sprintf("%s(%s)", g.pick("lower", "upper", "trim"), g.text(depth-1))
	case 4:
		return fmt.Sprintf("replace(%s, %s, %s)", g.text(0), g.text(0), g.text(0))
	default:
		return g.text(0)
	}
}

func (g exprGen) whole(depth int) string {
	if depth == 0 {
		return g.pick("timestamp", "3", "0", "9223372036854775807", "len("+g.text(0)+")")
	}
	return fmt.Sprintf("(%s %s %s)", g.whole(depth-1), g.pick("+", "-", "*"), g.whole(depth-1))
}

func (g exprGen) truth(depth int) string {
	switch g.r.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", g.text(depth), g.pick("contains", "startsWith", "endsWith"), g.text(depth))
	case 1:
		return fmt.Sprintf("(%s %s %s)", g.whole(1), g.pick("==", "!=", "<", "<=", ">", ">="), g.whole(1))
	case 2:
		if depth > 0 {
			return fmt.Sprintf("(%s %s %s)", g.truth(depth-1), g.pick("and", "or", "&&", "||"), g.truth(depth-1))
		}
	case 3:
		if depth > 0 {
			return g.pick("!", "not ") + g.truth(depth-1)
		}
	case 4:
		return g.pick("true", "false")
	}
	return fmt.Sprintf("(%s %s %s)", g.text(depth), g.pick("==", "!=", "<", "<=", ">", ">="), g.text(depth))
}

func compileText(t testing.TB, text string, s scope) *expression {
	t.Helper()
	f := yamlnode.Parse("x", fmt.Appendf(nil, "e: |\n  %s\n", text), nil)
	e := compile(f.Root().Map().Get("e"), s)
	if e == nil {
		t.Fatalf("%s: %v", text, f.Err())
	}
	return e
}

// TestNativeAgrees compares the closures with the expression library.
func TestNativeAgrees(t *testing.T) {
	g := exprGen{r: rand.New(rand.NewPCG(1, 2))}
	texts := []string{"", "a", "A b", " é ", "b a A", "\xff"}
	covered := 0
	for range 3000 {
		var e *expression
		switch g.r.IntN(4) {
		case 0:
			e = compileText(t, g.text(2), scope{})
		case 1:
			e = compileText(t, g.whole(2), scope{})
		case 2:
			e = compileText(t, fmt.Sprintf("split(%s, %s)", g.text(2), g.pick(`" "`, `""`, `"a"`, `"b "`)), scope{})
		default:
			e = compileText(t, g.truth(2), scope{})
		}
		if n := e.native; n.truth != nil || n.text != nil || n.whole != nil || n.parts != nil {
			covered++
		}
		for range 4 {
			m := &message{key: textDatum(g.pick(texts...)), value: textDatum(g.pick(texts...)), ts: g.r.Int64N(5)}
			if g.r.IntN(8) == 0 {
				m.value = nullDatum()
			}
			x := &evaluator{env: make(map[string]any)}
			got, gotErr := evaluate(x, e, m)
			e2 := *e
			e2.native = native{}
			want, wantErr := evaluate(x, &e2, m)
			if got != want || (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%s with key %q and value %q (null: %v): got %s, %v; the library says %s, %v",
					e.text, m.key.raw, m.value.raw, m.value.null, got, gotErr, want, wantErr)
			}
		}
	}
	if covered < 1000 {
		t.Errorf("only %d expressions were covered", covered)
	}
}

// evaluate runs e the way a step of its type does.
func evaluate(x *evaluator, e *expression, m *message) (string, error) {
	switch e.typ.shape {
	case truth:
		b, err := x.truth(e, m)
		return fmt.Sprint(b), err
	case list:
		var out []string
		err := x.each(e, m, e.typ.format, func(d datum, err error) error {
			out = append(out, fmt.Sprintf("%q %v %v", d.raw, d.null, err))
			return nil
		})
		return fmt.Sprint(out), err
	default:
		d, err := x.datum(e, m, e.typ.format)
		return fmt.Sprintf("%q %d %v %v", d.raw, d.bits, d.null, d.raw == nil), err
	}
}
