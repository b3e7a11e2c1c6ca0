package format

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// mostDigits bounds the digits of a decimal number that is written, and its exponent.
const mostDigits = 1000

// decimalText are the digits of a number in two's complement, scale of them behind the point.
func decimalText(b []byte, scale int) string {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	text, sign := n.String(), ""
	if scale <= 0 {
		return text
	}
	if text[0] == '-' {
		text, sign = text[1:], "-"
	}
	if missing := scale + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	return sign + text[:len(text)-scale] + "." + text[len(text)-scale:]
}

// decimalBytes writes a number of at most precision digits in two's complement, in size bytes or, if that is 0, as few as it
// takes.
func decimalBytes(v any, precision, scale, size int) ([]byte, error) {
	text, ok := decimalOf(v)
	if !ok {
		return nil, mismatch(fmt.Sprintf("a decimal number of %d digits, %d behind the point", precision, scale), v)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, mismatch("a decimal number", v)
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	if !r.IsInt() {
		return nil, fmt.Errorf("%s has more than %d digits behind the point", text, scale)
	}
	n := r.Num()
	if digits := len(new(big.Int).Abs(n).String()); digits > precision {
		return nil, fmt.Errorf("%s has %d digits, with %d behind the point; %d fit", text, digits, scale, precision)
	}
	need := n.BitLen()/8 + 1
	if n.Sign() < 0 { // -128 takes one byte
		need = new(big.Int).Add(n, big.NewInt(1)).BitLen()/8 + 1
	}
	if size == 0 {
		size = need
	}
	if need > size {
		return nil, fmt.Errorf("%s does not fit %d bytes", text, size)
	}
	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(size)*8))
	}
	return n.FillBytes(make([]byte, size)), nil
}

// decimalOf is the shortest text of a number.
func decimalOf(v any) (string, bool) {
	if s, ok := v.(string); ok {
		plain := strings.Trim(s, "+-0123456789.") == ""
		return s, plain && s != "" && len(s) <= mostDigits
	}
	if f, ok := v.(float64); ok {
		text := strconv.FormatFloat(f, 'f', -1, 64)
		return text, strings.Trim(text, "-0123456789.") == ""
	}
	n, ok := whole(v)
	return strconv.FormatInt(n, 10), ok
}
