package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchBytes bounds one answer; a larger single batch still comes.
const fetchBytes = 1 << 20

// cursor reads one partition by position. Its own Fetch requests say how far the log was read even where
// no record is left, behind compacted batches and control records, which a consuming client keeps to itself.
type cursor struct {
	b         *Bus
	partition int32
	next      int64 // of the next record to read
	leader    int32 // -1: to be asked for
	topicID   [16]byte
}

// cursorFromStart stands at the first offset in the log; end is where the log ended.
func (b *Bus) cursorFromStart(ctx context.Context, partition int32) (c *cursor, end int64, err error) {
	c = &cursor{b: b, partition: partition, leader: -1}
	if err := c.locate(ctx); err != nil {
		return nil, 0, err
	}
	adm := kadm.NewClient(b.cl)
	ends, err := adm.ListEndOffsets(ctx, b.topic)
	if err == nil {
		end, err = offset(ends, b.topic, partition)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("ask for the end of topic %s: %w", b.topic, err)
	}
	starts, err := adm.ListStartOffsets(ctx, b.topic)
	if err == nil {
		c.next, err = offset(starts, b.topic, partition)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("ask for the start of topic %s: %w", b.topic, err)
	}
	return c, end, nil
}

func offset(l kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := l.Lookup(topic, partition)
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	return o.Offset, o.Err
}

// locate asks who leads the partition. A topic that was deleted and created anew is another log.
func (c *cursor) locate(ctx context.Context) error {
	d, err := c.b.describe(ctx)
	if err != nil {
		return err
	}
	p, ok := d.Partitions[c.partition]
	if !ok {
		return fmt.Errorf("topic %s has no partition %d: %w", c.b.topic, c.partition, ErrUnfitTopic)
	}
	if c.topicID != [16]byte{} && c.topicID != d.ID {
		return fmt.Errorf("topic %s was created anew: %w", c.b.topic, errGone)
	}
	c.leader, c.topicID = p.Leader, d.ID
	return nil
}

// fetch returns the records from the position on, and moves it. With none there it waits for up to wait.
// Trouble that passes by itself, such as a leader that has moved, gives no records and no error.
func (c *cursor) fetch(ctx context.Context, wait time.Duration) ([]*kgo.Record, error) {
	if c.leader < 0 {
		if err := c.locate(ctx); err != nil {
			return nil, err
		}
	}
	resp, err := c.b.cl.Broker(int(c.leader)).RetriableRequest(ctx, c.request(wait))
	if err != nil {
		c.leader = -1
		return nil, fmt.Errorf("fetch from topic %s: %w", c.b.topic, err)
	}
	fetched, ok := resp.(*kmsg.FetchResponse)
	if !ok || len(fetched.Topics) != 1 || len(fetched.Topics[0].Partitions) != 1 {
		if ok {
			err = kerr.ErrorForCode(fetched.ErrorCode)
		}
		return nil, fmt.Errorf("fetch from topic %s: an answer without the partition: %w", c.b.topic, err)
	}
	part, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: c.next, Topic: c.b.topic, Partition: c.partition,
	}, &fetched.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	switch {
	case errors.Is(part.Err, kerr.OffsetOutOfRange):
		return nil, fmt.Errorf("offset %d of topic %s, partition %d: %w", c.next, c.b.topic, c.partition, errGone)
	case part.Err != nil && kerr.IsRetriable(part.Err):
		c.leader = -1
		return nil, sleep(ctx, 100*time.Millisecond)
	case part.Err != nil:
		c.leader = -1
		return nil, fmt.Errorf("fetch from topic %s, partition %d: %w", c.b.topic, c.partition, part.Err)
	}
	c.next = next
	return part.Records, nil
}

func (c *cursor) request(wait time.Duration) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition = c.partition
	p.FetchOffset = c.next
	p.PartitionMaxBytes = fetchBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic = c.b.topic
	t.TopicID = c.topicID
	t.Partitions = append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(wait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = fetchBytes
	req.Topics = append(req.Topics, t)
	return req
}
