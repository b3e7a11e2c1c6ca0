package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Inspect tells which internal topics are there, and finds the problems that Ensure would have with them, all at once. It
// changes nothing: the brokers are asked whether they would create what is missing, if create is true.
func Inspect(ctx context.Context, cl *kgo.Client, specs []Spec, create bool) (found map[string]Info, missing []Spec, err error) {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	found, failed, err := metadata(ctx, cl, names)
	if err != nil {
		return nil, nil, err
	}
	if err := readSettings(ctx, cl, found); err != nil {
		return nil, nil, err
	}
	var problems []error
	for _, s := range specs {
		cause, ok := failed[s.Name]
		switch {
		case !ok:
			if err := check(s, found[s.Name]); err != nil {
				problems = append(problems, err)
			}
		case errors.Is(cause, kerr.UnknownTopicOrPartition):
			missing = append(missing, s)
			if !create {
				problems = append(problems, s.missing())
			}
		case isDenied(cause):
			problems = append(problems, denied("DESCRIBE", "topic "+s.Name, cause))
		default:
			problems = append(problems, fmt.Errorf("topic %s cannot be used: %w", s.Name, cause))
		}
	}
	if create {
		problems = append(problems, createAll(ctx, cl, slices.Clone(missing), true))
	}
	return found, missing, errors.Join(problems...)
}
