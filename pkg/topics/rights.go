package topics

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CheckRights tells which of the operations this client may not do on existing topics, all at once, as ErrDenied. Brokers
// that do not say what it may are believed to allow everything.
func CheckRights(ctx context.Context, cl *kgo.Client, needs map[string][]kmsg.ACLOperation) error {
	found, failed, err := metadata(ctx, cl, slices.Collect(maps.Keys(needs)))
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if isDenied(failed[name]) {
			problems = append(problems, denied("DESCRIBE", "topic "+name, failed[name]))
		}
		info, ok := found[name]
		if !ok || info.authorized == 0 || info.authorized == math.MinInt32 {
			continue
		}
		for _, op := range needs[name] {
			if info.authorized&(1<<op) == 0 {
				problems = append(problems, denied(strings.ToUpper(op.String()), "topic "+name, kerr.TopicAuthorizationFailed))
			}
		}
	}
	return errors.Join(problems...)
}
