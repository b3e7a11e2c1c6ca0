package topology

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// toWhole is the int() of expressions. Unlike the library's it gives the same on all processors: a float beyond the range becomes its
// end, and one that is no number 0, as in Java.
func toWhole(args ...any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		switch {
		case v != v:
			return 0, nil
		case v >= 1<<63:
			return math.MaxInt64, nil
		case v < -1<<63:
			return math.MinInt64, nil
		}
		return int(v), nil
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
