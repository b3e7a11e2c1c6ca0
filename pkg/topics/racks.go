package topics

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Racks tells for each topic and partition which racks have replicas of it, in order. It asks once; a topic that the brokers
// do not describe is an error.
func Racks(ctx context.Context, cl *kgo.Client, names []string) (map[string][][]string, error) {
	found := make(map[string][][]string, len(names))
	if len(names) == 0 {
		return found, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, unanswered(cl, "asking for the racks of topics", err)
	}
	rackOf := make(map[int32]string)
	for _, b := range resp.Brokers {
		if b.Rack != nil && *b.Rack != "" {
			rackOf[b.NodeID] = *b.Rack
		}
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("asking for the racks of topic %s: %w", *t.Topic, err)
		}
		racks := make([][]string, len(t.Partitions))
		for _, p := range t.Partitions {
			if p.Partition < 0 || int(p.Partition) >= len(racks) {
				continue
			}
			for _, node := range p.Replicas {
				if rack, known := rackOf[node]; known {
					racks[p.Partition] = append(racks[p.Partition], rack)
				}
			}
			slices.Sort(racks[p.Partition])
			racks[p.Partition] = slices.Compact(racks[p.Partition])
		}
		found[*t.Topic] = racks
	}
	return found, nil
}
