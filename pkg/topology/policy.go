package topology

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers that a dead letter carries in addition to those of the record.
const (
	HeaderError     = "streamworker.error"
	HeaderTopic     = "streamworker.topic"
	HeaderPartition = "streamworker.partition"
	HeaderOffset    = "streamworker.offset"
)

// RecordError is a record that could not be processed, under on_error: fail.
type RecordError struct {
	Topic     string
	Partition int32
	Offset    int64
	Stream    string
	Err       error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("stream %s: record at %s[%d] offset %d: %v (on_error: skip or dead_letter would go on with the next record)",
		e.Stream, e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// fault is an error that a record is to blame for, and that on_error decides about. Other errors, such as a
// store's, stop the processor.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

// failed takes back what a bad record, or a bad element of its list, has done since before, and applies the source's
// on_error. Nil: go on.
func (c *chain) failed(before mark, err error) error {
	var blame fault
	if !errors.As(err, &blame) {
		return err
	}
	rec := c.m.source
	policy := c.seg.source.OnError
	if policy == Stop {
		var placed *RecordError
		if errors.As(err, &placed) {
			return err
		}
		return &RecordError{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Stream: c.seg.stream, Err: blame.error}
	}
	c.p.rollback(before)
	switch {
	case c.bad: // settled with an earlier element
	case policy == DeadLetter:
		c.p.deadLetter(c.seg.source.DeadLetterTopic, rec, blame)
		c.p.DeadLettered++
	default:
		c.p.Skipped++
	}
	c.bad = true
	return nil
}

func (p *Processor) deadLetter(topic string, rec *kgo.Record, err error) {
	r := p.slabs.record()
	r.Topic, r.Partition = topic, -1
	r.Key, r.Value, r.Timestamp = rec.Key, rec.Value, rec.Timestamp
	r.Headers = append(rec.Headers[:len(rec.Headers):len(rec.Headers)],
		kgo.RecordHeader{Key: HeaderError, Value: []byte(err.Error())},
		kgo.RecordHeader{Key: HeaderTopic, Value: []byte(rec.Topic)},
		kgo.RecordHeader{Key: HeaderPartition, Value: strconv.AppendInt(nil, int64(rec.Partition), 10)},
		kgo.RecordHeader{Key: HeaderOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)})
	p.pending = append(p.pending, r)
}
