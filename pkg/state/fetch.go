package state

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	fetchBytes          = 4 << 20
	fetchPartitionBytes = 1 << 20
)

// fetch is one Fetch request to one broker, and its outcome.
type fetch struct {
	broker int32
	wait   time.Duration
	bytes  int32 // of the whole answer
	asked  []asked
	err    error // of the request as a whole
	size   int   // bytes of records received
}

// asked is one partition of the request, with the position as of then.
type asked struct {
	tail     *tail
	topic    string
	topicID  [16]byte
	part     int32
	position int64
	fetched  *fetched // nil: not in the answer
}

// fetched is the answer for one partition.
type fetched struct {
	err                error
	records            []*kgo.Record
	next               int64
	size               int // bytes of record batches
	start, stable, end int64
	alone              bool
}

func newFetch(broker int32, tails []*tail, wait time.Duration, bytes int32) *fetch {
	f := &fetch{broker: broker, wait: wait, bytes: bytes}
	for _, t := range tails {
		f.asked = append(f.asked, asked{tail: t, topic: t.topic, topicID: t.topicID, part: t.partition, position: t.position})
	}
	return f
}

func (f *fetch) request() *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(f.wait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = f.bytes
	req.IsolationLevel = 1 // what is not committed must not become state
	req.SessionEpoch = -1  // no session
	index := make(map[string]int)
	for _, a := range f.asked {
		i, ok := index[a.topic]
		if !ok {
			i = len(req.Topics)
			index[a.topic] = i
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic, topic.TopicID = a.topic, a.topicID
			req.Topics = append(req.Topics, topic)
		}
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = a.part, a.position, min(f.bytes, fetchPartitionBytes)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	return req
}

// run sends the request and decodes the answer.
func (f *fetch) run(ctx context.Context, cl *kgo.Client, decompressor kgo.Decompressor) {
	kresp, err := cl.Broker(int(f.broker)).Request(ctx, f.request())
	if err != nil {
		f.err = err
		return
	}
	resp := kresp.(*kmsg.FetchResponse)
	if f.err = kerr.ErrorForCode(resp.ErrorCode); f.err != nil {
		return
	}
	names := make(map[[16]byte]string) // newer brokers name topics by id only
	index := make(map[topicPartition]*asked)
	for i := range f.asked {
		a := &f.asked[i]
		names[a.topicID] = a.topic
		index[topicPartition{a.topic, a.part}] = a
	}
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		name := topic.Topic
		if name == "" {
			name = names[topic.TopicID]
		}
		for j := range topic.Partitions {
			if a := index[topicPartition{name, topic.Partitions[j].Partition}]; a != nil {
				a.fetched = f.decode(ctx, cl, a, &topic.Partitions[j], decompressor)
				f.size += a.fetched.size
			}
		}
	}
}

func (f *fetch) decode(ctx context.Context, cl *kgo.Client, a *asked, part *kmsg.FetchResponseTopicPartition, decompressor kgo.Decompressor) *fetched {
	opts := kgo.ProcessFetchPartitionOpts{Offset: a.position, IsolationLevel: kgo.ReadCommitted(), Topic: a.topic, Partition: a.part}
	fp, next := kgo.ProcessFetchPartition(opts, part, decompressor, nil)
	out := &fetched{
		err: fp.Err, records: fp.Records, next: next, size: len(part.RecordBatches),
		start: fp.LogStartOffset, stable: fp.LastStableOffset, end: fp.HighWatermark, alone: len(f.asked) == 1,
	}
	if errors.Is(fp.Err, kerr.OffsetOutOfRange) {
		start, end, err := logRange(ctx, cl, f.broker, a.topic, a.part)
		switch {
		case err != nil:
			out.err = err
		case a.position >= start && a.position <= end:
			out.err = kerr.OffsetNotAvailable // it is in range by now: ask again
		default:
			out.start, out.end = start, end
		}
	}
	return out
}

// logRange asks the leader for the first offset and the high watermark: an answer "out of range" lacks them.
func logRange(ctx context.Context, cl *kgo.Client, broker int32, topic string, partition int32) (start, end int64, err error) {
	const latest, earliest = -1, -2
	offset := func(timestamp int64) (int64, error) {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = partition, timestamp
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic, t.Partitions = topic, []kmsg.ListOffsetsRequestTopicPartition{part}
		req := kmsg.NewPtrListOffsetsRequest()
		req.Topics = []kmsg.ListOffsetsRequestTopic{t}
		kresp, err := cl.Broker(int(broker)).Request(ctx, req)
		if err != nil {
			return 0, err
		}
		resp := kresp.(*kmsg.ListOffsetsResponse)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			return 0, errors.New("ListOffsets answered without the partition")
		}
		p := resp.Topics[0].Partitions[0]
		return p.Offset, kerr.ErrorForCode(p.ErrorCode)
	}
	if start, err = offset(earliest); err == nil {
		end, err = offset(latest)
	}
	return start, end, err
}

// leaders is one Metadata request and its outcome.
type leaders struct {
	topics map[string]*kmsg.MetadataResponseTopic
	err    error
}

func askLeaders(ctx context.Context, cl *kgo.Client, topics []string) *leaders {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return &leaders{err: err}
	}
	l := &leaders{topics: make(map[string]*kmsg.MetadataResponseTopic)}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			l.topics[*t.Topic] = t
		}
	}
	return l
}
