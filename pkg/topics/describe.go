package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// grace is how long a topic may be unknown that the user has just created: brokers hear of it one after another.
const grace = 2 * time.Second

// Describe tells the partition counts and ids of topics that the user creates. A missing one is ErrMissing, one that
// this client may not see ErrDenied.
func Describe(ctx context.Context, cl *kgo.Client, names []string) (map[string]Info, error) {
	found, failed, err := metadata(ctx, cl, names)
	for waited := time.Duration(0); err == nil && anyUnknown(failed) && waited < grace && sleep(ctx, pause); waited += pause {
		found, failed, err = metadata(ctx, cl, names)
	}
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, name := range slices.Sorted(slices.Values(names)) {
		cause, ok := failed[name]
		switch {
		case !ok:
		case errors.Is(cause, kerr.UnknownTopicOrPartition):
			problems = append(problems, fmt.Errorf("%w: %s: create it, or correct its name in the configuration", ErrMissing, name))
		case isDenied(cause):
			problems = append(problems, denied("DESCRIBE", "topic "+name, cause))
		default:
			problems = append(problems, fmt.Errorf("topic %s cannot be used: %w", name, cause))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return found, nil
}

func anyUnknown(failed map[string]error) bool {
	for _, cause := range failed {
		if errors.Is(cause, kerr.UnknownTopicOrPartition) {
			return true
		}
	}
	return false
}

// metadata asks for the topics by name. A topic is in exactly one of the two maps. A topic whose partitions have no
// leader yet (it was just created) is waited for, as long as ctx lasts.
func metadata(ctx context.Context, cl *kgo.Client, names []string) (found map[string]Info, failed map[string]error, err error) {
	if len(names) == 0 { // an empty list would mean: all topics of the cluster
		return map[string]Info{}, nil, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range slices.Sorted(slices.Values(names)) {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	for {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return nil, nil, unanswered(cl, "describing topics", err)
		}
		found, failed = map[string]Info{}, map[string]error{}
		again := false
		for _, t := range resp.Topics {
			if t.Topic == nil {
				continue
			}
			switch cause := kerr.ErrorForCode(t.ErrorCode); {
			case cause == nil:
				found[*t.Topic] = infoOf(t)
			case errors.Is(cause, kerr.LeaderNotAvailable):
				again = true
			default:
				failed[*t.Topic] = cause
			}
		}
		if !again {
			return found, failed, nil
		}
		if !sleep(ctx, pause) {
			return nil, nil, fmt.Errorf("describing topics: some have no leader: %w", ctx.Err())
		}
	}
}

func infoOf(t kmsg.MetadataResponseTopic) Info {
	info := Info{Name: *t.Topic, ID: t.TopicID, Partitions: int32(len(t.Partitions)), authorized: t.AuthorizedOperations}
	for _, p := range t.Partitions {
		if p.Partition == 0 {
			info.Replication = len(p.Replicas)
		}
	}
	return info
}

// readSettings fills in what the topics' configuration says.
func readSettings(ctx context.Context, cl *kgo.Client, found map[string]Info) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType = kmsg.ConfigResourceTypeTopic
		resource.ResourceName = name
		resource.ConfigNames = []string{cleanupPolicy, deleteRetention, minInsync, retention}
		req.Resources = append(req.Resources, resource)
	}
	if len(req.Resources) == 0 {
		return nil
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return unanswered(cl, "reading the settings of topics", err)
	}
	var problems []error
	for _, r := range resp.Resources {
		if cause := kerr.ErrorForCode(r.ErrorCode); cause != nil {
			if isDenied(cause) {
				cause = denied("DESCRIBE_CONFIGS", "topic "+r.ResourceName, cause)
			}
			problems = append(problems, fmt.Errorf("reading the settings of topic %s: %w", r.ResourceName, cause))
			continue
		}
		info, err := withSettings(found[r.ResourceName], r.Configs)
		if err != nil {
			problems = append(problems, err)
		}
		found[r.ResourceName] = info
	}
	return errors.Join(problems...)
}

// MaxMessageBytes tells the largest batch that brokers take for each topic. Topics whose settings this client may not see are
// left out.
func MaxMessageBytes(ctx context.Context, cl *kgo.Client, names []string) (map[string]int, error) {
	found := make(map[string]int, len(names))
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType = kmsg.ConfigResourceTypeTopic
		resource.ResourceName = name
		resource.ConfigNames = []string{maxMessage}
		req.Resources = append(req.Resources, resource)
	}
	if len(req.Resources) == 0 {
		return found, nil
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, unanswered(cl, "reading the settings of topics", err)
	}
	for _, r := range resp.Resources {
		for _, c := range r.Configs {
			if c.Name != maxMessage || c.Value == nil {
				continue
			}
			if n, err := strconv.Atoi(*c.Value); err == nil {
				found[r.ResourceName] = n
			}
		}
	}
	return found, nil
}

func withSettings(info Info, configs []kmsg.DescribeConfigsResponseResourceConfig) (Info, error) {
	for _, c := range configs {
		if c.Value == nil {
			continue
		}
		var err error
		switch c.Name {
		case cleanupPolicy:
			info.Cleanup = *c.Value
		case deleteRetention:
			var ms int64
			ms, err = strconv.ParseInt(*c.Value, 10, 64)
			info.DeleteRetention = time.Duration(ms) * time.Millisecond
		case retention:
			info.Retention = *c.Value
		case minInsync:
			info.MinInsync, err = strconv.Atoi(*c.Value)
		}
		if err != nil {
			return info, fmt.Errorf("topic %s: setting %s: %w", info.Name, c.Name, err)
		}
	}
	return info, nil
}
