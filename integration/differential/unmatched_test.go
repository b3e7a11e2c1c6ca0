//go:build integration

package differential

import (
	"fmt"
	"slices"
	"strings"
)

// sides are those of a join's result, which is written left|right.
func (o output) sides() (left, right string) {
	left, right, _ = strings.Cut(fmt.Sprint(o.Value), "|")
	return left, right
}

// apart parts the results of a join from those of records without a counterpart.
func apart(all []output) (matched, alone []output) {
	for _, o := range all {
		if l, r := o.sides(); l == "null" || r == "null" {
			alone = append(alone, o)
		} else {
			matched = append(matched, o)
		}
	}
	return matched, alone
}

// compareAlone wants both sides to write the same of records without a counterpart, but for records that do get one: later than
// streamworker has to wait for it, and Kafka Streams happens to wait; or although Kafka Streams has not waited. It returns what is
// wrong.
func compareAlone(matched, theirs, ours []output) string {
	met := make(map[string]int) // by side: the last input that brought it a counterpart
	for _, o := range matched {
		l, r := o.sides()
		met["l"+l], met["r"+r] = o.Input, o.Input
	}
	meets := func(o output) int {
		l, r := o.sides()
		return max(met["l"+l], met["r"+r])
	}
	when := func(o output) string { return fmt.Sprintf("%s = %v at %d", o.row(), o.Value, o.TS) }
	var wrong []string
	left := make(map[string]int)
	for _, o := range theirs {
		left[when(o)]++
	}
	for _, o := range ours {
		if left[when(o)]--; left[when(o)] < 0 && meets(o) <= o.Input {
			wrong = append(wrong, "only streamworker writes "+o.String())
		}
	}
	for _, o := range theirs {
		if left[when(o)] > 0 && meets(o) == 0 {
			wrong = append(wrong, "only Kafka Streams writes "+o.String())
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, "\n")
}
