package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// propagation bounds the wait until all brokers know a topic that one of them has created.
const propagation = 30 * time.Second

// Ensure makes sure that every internal topic exists as specified, and tells what it found. Missing topics are created
// if create is true (other instances may do so at the same time), else they are ErrMissing. Existing ones are never
// changed: one with another partition count, cleanup policy or, of repartition topics, age limit is ErrMismatch.
func Ensure(ctx context.Context, cl *kgo.Client, specs []Spec, create bool) (map[string]Info, error) {
	byName := make(map[string]Spec, len(specs))
	for _, s := range specs {
		byName[s.Name] = s
	}
	names := slices.Sorted(maps.Keys(byName))
	found, failed, err := metadata(ctx, cl, names)
	if err != nil {
		return nil, err
	}
	var missing []Spec
	var problems []error
	for _, name := range names {
		cause, ok := failed[name]
		switch {
		case !ok:
		case errors.Is(cause, kerr.UnknownTopicOrPartition):
			missing = append(missing, byName[name])
		case isDenied(cause):
			problems = append(problems, denied("DESCRIBE", "topic "+name, cause))
		default:
			problems = append(problems, fmt.Errorf("topic %s cannot be used: %w", name, cause))
		}
	}
	if !create {
		for _, s := range missing {
			problems = append(problems, s.missing())
		}
		missing = nil
	}
	if err := createAll(ctx, cl, missing, false); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if found, err = settled(ctx, cl, names, found, len(missing) > 0); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := check(byName[name], found[name]); err != nil {
			problems = append(problems, err)
		}
	}
	return found, errors.Join(problems...)
}

// missing is the error for a topic that the user has to create.
func (s Spec) missing() error {
	return fmt.Errorf("%w: %s (%s), and topics are not to be created by this instance: create it with: %s",
		ErrMissing, s.Name, s.Purpose, s.createCommand())
}

// createAll creates the topics; one that another instance has created meanwhile is as good. With validate the brokers only
// say whether they would.
func createAll(ctx context.Context, cl *kgo.Client, specs []Spec, validate bool) error {
	for len(specs) > 0 {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.ValidateOnly = validate
		req.TimeoutMillis = int32(propagation / time.Millisecond)
		byName := make(map[string]Spec, len(specs))
		for _, s := range specs {
			req.Topics = append(req.Topics, s.request())
			byName[s.Name] = s
		}
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return unanswered(cl, "creating topics", err)
		}
		specs = nil
		var problems []error
		for _, t := range resp.Topics {
			cause := kerr.ErrorForCode(t.ErrorCode)
			switch {
			case cause == nil, errors.Is(cause, kerr.TopicAlreadyExists):
			case kerr.IsRetriable(cause), errors.Is(cause, kerr.ThrottlingQuotaExceeded):
				specs = append(specs, byName[t.Topic])
			default:
				problems = append(problems, refused(byName[t.Topic], cause, t.ErrorMessage))
			}
		}
		if len(problems) > 0 {
			return errors.Join(problems...)
		}
		if len(specs) > 0 && !sleep(ctx, max(pause, time.Duration(resp.ThrottleMillis)*time.Millisecond)) {
			return fmt.Errorf("creating topic %s: %w", specs[0].Name, ctx.Err())
		}
	}
	return nil
}

// refused is the error for a topic that the broker would not create.
func refused(s Spec, cause error, message *string) error {
	if isDenied(cause) {
		return fmt.Errorf("%w; or create it yourself with: %s", denied("CREATE", "topic "+s.Name, cause), s.createCommand())
	}
	said := ""
	if message != nil && *message != "" {
		said = ": " + *message
	}
	remedy := "correct the configuration, or create it yourself with: " + s.createCommand()
	if errors.Is(cause, kerr.InvalidReplicationFactor) {
		remedy = fmt.Sprintf("its replication (%d) must not exceed the number of brokers: lower it or add brokers", s.Replication)
	}
	return fmt.Errorf("%w: %s (%s): %w%s: %s", ErrRefused, s.Name, s.Purpose, cause, said, remedy)
}

// settled returns the topics with their settings, once all are to be seen. It asks again while brokers that have not
// yet heard of a new topic say that it is unknown.
func settled(ctx context.Context, cl *kgo.Client, names []string, found map[string]Info, created bool) (map[string]Info, error) {
	ctx, cancel := context.WithTimeout(ctx, propagation)
	defer cancel()
	for {
		var failed map[string]error
		var err error
		if created {
			if found, failed, err = metadata(ctx, cl, names); err != nil {
				return nil, err
			}
		}
		if len(failed) == 0 {
			if err = readSettings(ctx, cl, found); err == nil {
				return found, nil
			}
			if !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return nil, err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			if err = fmt.Errorf("topic %s, just created: %w", name, failed[name]); !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return nil, err
			}
		}
		if !sleep(ctx, pause) {
			return nil, err
		}
		created = true
	}
}

// check compares a topic with what is needed of it.
func check(s Spec, have Info) error {
	const recreate = "keep the topic and run this application under another name (app), or delete the topic so that it is created anew"
	if have.Partitions != s.Partitions {
		return fmt.Errorf("%w: %s (%s) has %d partitions, %d are needed: Kafka cannot re-partition what is in it: "+
			"give the input topics back the partition count of before, or %s",
			ErrMismatch, s.Name, s.Purpose, have.Partitions, s.Partitions, recreate)
	}
	if !samePolicy(have.Cleanup, s.Cleanup) {
		return fmt.Errorf("%w: %s (%s) has %s=%s, %s is needed: otherwise Kafka removes records that are still needed: change it with: "+
			"kafka-configs --alter --entity-type topics --entity-name %s --add-config %s=%s",
			ErrMismatch, s.Name, s.Purpose, cleanupPolicy, have.Cleanup, s.Cleanup, s.Name, cleanupPolicy, s.Cleanup)
	}
	if want := s.Config[retention]; want != "" && have.Retention != want {
		return fmt.Errorf("%w: %s (%s) has %s=%s, %s is needed: otherwise Kafka removes records that were not processed yet: change it with: "+
			"kafka-configs --alter --entity-type topics --entity-name %s --add-config %s=%s",
			ErrMismatch, s.Name, s.Purpose, retention, have.Retention, want, s.Name, retention, want)
	}
	return nil
}

// samePolicy compares values of cleanup.policy, a list whose order does not matter.
func samePolicy(a, b string) bool {
	list := func(s string) []string {
		policies := strings.Split(strings.ReplaceAll(s, " ", ""), ",")
		slices.Sort(policies)
		return policies
	}
	return slices.Equal(list(a), list(b))
}
