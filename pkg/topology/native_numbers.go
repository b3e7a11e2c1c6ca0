package topology

import "cmp"

// computeBinary is an operator between what l and r give.
func computeBinary(operator string, l, r computed) computed {
	switch operator {
	case "and", "&&":
		return computeLogic(l, r, false)
	case "or", "||":
		return computeLogic(l, r, true)
	case "??":
		return func(m *message) (scalar, bool) {
			if v, ok := l(m); !ok || v.kind != nothing {
				return v, ok
			}
			return r(m)
		}
	}
	apply := operatorOf(operator)
	if apply == nil {
		return nil
	}
	return func(m *message) (scalar, bool) {
		a, ok := l(m)
		if !ok {
			return scalar{}, false
		}
		b, ok := r(m)
		if !ok {
			return scalar{}, false
		}
		return apply(a, b)
	}
}

// computeLogic does not look at r if l decides.
func computeLogic(l, r computed, decides bool) computed {
	return func(m *message) (scalar, bool) {
		v, ok := l(m)
		if !ok || v.kind != truthKind || v.truth() == decides {
			return v, ok && v.kind == truthKind
		}
		v, ok = r(m)
		return v, ok && v.kind == truthKind
	}
}

func operatorOf(operator string) func(a, b scalar) (scalar, bool) {
	switch operator {
	case "+":
		return func(a, b scalar) (scalar, bool) {
			switch {
			case a.kind == intKind && b.kind == intKind:
				return intScalar(a.int() + b.int()), true
			case a.kind == textKind && b.kind == textKind:
				return textScalar(a.text + b.text), true
			default:
				return floatScalar(a.float() + b.float()), a.isNumber() && b.isNumber()
			}
		}
	case "-":
		return func(a, b scalar) (scalar, bool) {
			if a.kind == intKind && b.kind == intKind {
				return intScalar(a.int() - b.int()), true
			}
			return floatScalar(a.float() - b.float()), a.isNumber() && b.isNumber()
		}
	case "*":
		return func(a, b scalar) (scalar, bool) {
			if a.kind == intKind && b.kind == intKind {
				return intScalar(a.int() * b.int()), true
			}
			return floatScalar(a.float() * b.float()), a.isNumber() && b.isNumber()
		}
	case "/":
		return func(a, b scalar) (scalar, bool) {
			return floatScalar(a.float() / b.float()), a.isNumber() && b.isNumber()
		}
	case "==":
		return equal
	case "!=":
		return func(a, b scalar) (scalar, bool) {
			v, ok := equal(a, b)
			return truthScalar(!v.truth()), ok
		}
	case "<":
		return func(a, b scalar) (scalar, bool) { c, ok := compare(a, b); return truthScalar(c == less), ok }
	case "<=":
		return func(a, b scalar) (scalar, bool) { c, ok := compare(a, b); return truthScalar(c != more), ok }
	case ">":
		return func(a, b scalar) (scalar, bool) { c, ok := compare(a, b); return truthScalar(c == more), ok }
	case ">=":
		return func(a, b scalar) (scalar, bool) { c, ok := compare(a, b); return truthScalar(c != less), ok }
	default:
		return nil
	}
}

func equal(a, b scalar) (scalar, bool) {
	switch {
	case a.kind == otherKind || b.kind == otherKind:
		return scalar{}, false
	case a.isNumber() && b.isNumber():
		if a.kind == intKind && b.kind == intKind {
			return truthScalar(a.int() == b.int()), true
		}
		return truthScalar(a.float() == b.float()), true
	default:
		return truthScalar(a.kind == b.kind && a.bits == b.bits && a.text == b.text), true
	}
}

const (
	less = -1
	more = 1
)

// compare is for two numbers or two texts. NaN has no order, and is left to the library.
func compare(a, b scalar) (int, bool) {
	switch {
	case a.kind == intKind && b.kind == intKind:
		return cmp.Compare(a.int(), b.int()), true
	case a.isNumber() && b.isNumber():
		x, y := a.float(), b.float()
		return cmp.Compare(x, y), x == x && y == y
	default:
		return cmp.Compare(a.text, b.text), a.kind == textKind && b.kind == textKind
	}
}
