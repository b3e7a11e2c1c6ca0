package group

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Committed is what the group has committed for one partition.
type Committed struct {
	Offset   int64 // of the next record to process; -1: nothing is committed
	Metadata string
	Err      error // of this partition; ErrUnstable: a transaction on it is under way, ask again
}

// Fetch asks once for the committed offsets of the partitions, stable ones only. The error is that of the
// request as a whole; those of single partitions are in the result, which has an entry for each.
// Pollers call it every few milliseconds: unlike kgo's own group client, it does not sleep when an offset is
// unstable.
func (c *Coordinator) Fetch(ctx context.Context, parts []TopicPartition) (map[TopicPartition]Committed, error) {
	out := make(map[TopicPartition]Committed, len(parts))
	if len(parts) == 0 {
		return out, nil
	}
	req, topics, err := c.fetchRequest(ctx, parts)
	if err != nil {
		return nil, fmt.Errorf("fetch committed offsets: %w", err)
	}
	answer, err := c.send(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("fetch committed offsets: %w", err)
	}
	resp := answer.(*kmsg.OffsetFetchResponse)
	code := resp.ErrorCode
	for _, g := range resp.Groups {
		code = g.ErrorCode
	}
	missing := Committed{Offset: -1, Err: errors.New("the answer leaves the partition out")}
	switch err := kerr.ErrorForCode(code); {
	case errors.Is(err, kerr.GroupIDNotFound): // nobody has joined or committed yet
		missing.Err = nil
	case err != nil:
		c.moved(code)
		return nil, fmt.Errorf("fetch committed offsets: %w", err)
	}
	for _, p := range parts {
		out[p] = missing
	}
	note := func(topic string, id [16]byte, partition int32, offset int64, metadata *string, code int16) {
		if topic == "" {
			topic = topics[id]
		}
		at := TopicPartition{topic, partition}
		if _, asked := out[at]; !asked {
			return
		}
		committed := Committed{Offset: offset}
		if metadata != nil {
			committed.Metadata = *metadata
		}
		if err := kerr.ErrorForCode(code); errors.Is(err, kerr.UnstableOffsetCommit) {
			committed = Committed{Offset: -1, Err: ErrUnstable}
		} else if err != nil {
			committed = Committed{Offset: -1, Err: err}
		}
		out[at] = committed
	}
	for _, t := range resp.Topics { // up to version 7
		for _, p := range t.Partitions {
			note(t.Topic, [16]byte{}, p.Partition, p.Offset, p.Metadata, p.ErrorCode)
		}
	}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				note(t.Topic, t.TopicID, p.Partition, p.Offset, p.Metadata, p.ErrorCode)
			}
		}
	}
	return out, nil
}

// fetchRequest builds the request in both its forms: with the group's name on top up to version 7, in a
// list of groups from version 8 on.
func (c *Coordinator) fetchRequest(ctx context.Context, parts []TopicPartition) (*kmsg.OffsetFetchRequest, map[[16]byte]string, error) {
	byTopic := make(map[string][]int32)
	names := make(map[string]bool)
	for _, p := range parts {
		byTopic[p.Topic] = append(byTopic[p.Topic], p.Partition)
		names[p.Topic] = true
	}
	ids, err := c.topicIDs(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = c.group, true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = c.group
	topics := make(map[[16]byte]string, len(names))
	for name, partitions := range byTopic {
		topics[ids[name]] = name
		old := kmsg.NewOffsetFetchRequestTopic()
		old.Topic, old.Partitions = name, partitions
		req.Topics = append(req.Topics, old)
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = name, ids[name], partitions
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	return req, topics, nil
}
