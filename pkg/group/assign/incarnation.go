package assign

import (
	"fmt"
	"strconv"
	"strings"
)

// SameRun reports whether both are one run under an instance id, restarts while draining included.
func (i Incarnation) SameRun(o Incarnation) bool {
	return i.StartMs == o.StartMs && i.Random == o.Random
}

// String is the form used in files, topics and output: <start ms>-<random, hex>-<starts>.
func (i Incarnation) String() string {
	return fmt.Sprintf("%d-%016x-%d", i.StartMs, i.Random, i.Starts)
}

// MarshalText writes the form of String.
func (i Incarnation) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads the form that String writes.
func (i *Incarnation) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "-")
	if len(parts) == 3 {
		start, errStart := strconv.ParseInt(parts[0], 10, 64)
		random, errRandom := strconv.ParseUint(parts[1], 16, 64)
		starts, errStarts := strconv.ParseUint(parts[2], 10, 32)
		if errStart == nil && errRandom == nil && errStarts == nil {
			*i = Incarnation{StartMs: start, Random: random, Starts: uint32(starts)}
			return nil
		}
	}
	return fmt.Errorf("%q is no incarnation: want <start ms>-<random, hex>-<starts>", text)
}
