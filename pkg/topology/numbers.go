package topology

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// wholeOf cuts the fraction off. It gives the same on all processors: a float beyond the range becomes its end, and one that is no
// number 0, as in Java.
func wholeOf(f float64) int {
	switch {
	case f != f:
		return 0
	case f >= 1<<63:
		return math.MaxInt64
	case f < -1<<63:
		return math.MinInt64
	default:
		return int(f)
	}
}

// toWhole is the int() of expressions.
func toWhole(args ...any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		return wholeOf(v), nil
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			return nil, fmt.Errorf("%s is no whole number of 64 bits", describe(v))
		}
		return n, nil
	case time.Duration:
		return int(v), nil // ns
	default:
		if n, ok := format.Integer(v); ok {
			return int(n), nil
		}
		return nil, fmt.Errorf("int() wants a number or text, got %s", describe(v))
	}
}
