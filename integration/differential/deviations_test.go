//go:build integration

package differential

import (
	"fmt"
	"maps"
	"slices"
)

// deviation names something in which streamworker differs from Kafka Streams on purpose. docs/semantics.md lists all.
type deviation string

// allowed makes both results alike where they differ by a deviation, and nowhere else.
var allowed = map[deviation]func(records []record, theirs, ours *result){}

func (d *deviation) UnmarshalYAML(b []byte) error {
	*d = deviation(b)
	if allowed[*d] == nil {
		return fmt.Errorf("no deviation is called %q: there are %q", b, slices.Sorted(maps.Keys(allowed)))
	}
	return nil
}

func (d deviation) allow(records []record, theirs, ours *result) { allowed[d](records, theirs, ours) }
