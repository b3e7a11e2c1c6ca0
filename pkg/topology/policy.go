package topology

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// Headers that a dead letter carries in addition to those of the record.
const (
	HeaderError     = "streamworker.error"
	HeaderTopic     = "streamworker.topic"
	HeaderPartition = "streamworker.partition"
	HeaderOffset    = "streamworker.offset"
	HeaderStore     = "streamworker.store"    // in place of topic, partition and offset: a result at a commit
	HeaderLeftOut   = "streamworker.left_out" // what did not fit: the value, the key or the headers of the record
	HeaderTimer     = "streamworker.timer"    // in place of topic, partition and offset: the step whose timer it was
)

// RecordError is a record that could not be processed, under on_error: fail, or one that has to wait under any policy.
type RecordError struct {
	Topic     string
	Partition int32
	Offset    int64
	Stream    string
	Err       error
	Waits     bool // no record is to blame: a schema cannot be asked for
}

func (e *RecordError) Error() string {
	after := "on_error: skip or dead_letter would go on with the next record"
	if e.Waits {
		after = "the record waits, it is not at fault"
	}
	return fmt.Sprintf("stream %s: record at %s[%d] offset %d: %v (%s)", e.Stream, e.Topic, e.Partition, e.Offset, e.Err, after)
}

func (e *RecordError) Unwrap() error { return e.Err }

// fault is an error that a record is to blame for, and that on_error decides about. Other errors, such as a
// store's, stop the processor.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

func (p *Processor) failed(before mark, err error) error { return p.current.failed(before, err) }

// failed takes back what a bad record, or a bad element of its list, has done since before, and applies the source's
// on_error. Nil: go on.
func (c *chain) failed(before mark, err error) error {
	var blame fault
	if !errors.As(err, &blame) {
		return err
	}
	rec := c.m.source
	policy := c.seg.source.OnError
	var away *format.Unavailable
	waits := errors.As(err, &away)
	if (policy == Stop || waits) && c.late != nil {
		return c.late.explain(blame.error)
	}
	if (policy == Stop || waits) && c.timer != "" {
		return fmt.Errorf("stream %s: timer of step %s: %w", c.seg.stream, c.timer, blame.error)
	}
	if policy == Stop || waits {
		var placed *RecordError
		if errors.As(err, &placed) {
			return err
		}
		return &RecordError{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Stream: c.seg.stream, Err: blame.error, Waits: waits}
	}
	c.p.rollback(before)
	switch {
	case c.bad: // settled with an earlier element
	case policy == DeadLetter:
		c.deadLetter(rec, blame)
		c.p.DeadLettered++
	default:
		c.p.Skipped++
	}
	c.bad = true
	return nil
}

func (c *chain) deadLetter(rec *kgo.Record, err error) {
	r := c.p.slabs.record()
	r.Topic, r.Partition = c.seg.source.DeadLetterTopic, -1
	r.Key, r.Value, r.Timestamp = rec.Key, rec.Value, rec.Timestamp
	r.Headers = append(rec.Headers[:len(rec.Headers):len(rec.Headers)], kgo.RecordHeader{Key: HeaderError, Value: []byte(err.Error())})
	switch {
	case c.late != nil:
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: HeaderStore, Value: []byte(c.late.step.store.Name)})
	case c.timer != "":
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: HeaderTimer, Value: []byte(c.timer)})
	default:
		r.Headers = append(r.Headers,
			kgo.RecordHeader{Key: HeaderTopic, Value: []byte(rec.Topic)},
			kgo.RecordHeader{Key: HeaderPartition, Value: strconv.AppendInt(nil, int64(rec.Partition), 10)},
			kgo.RecordHeader{Key: HeaderOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)})
	}
	c.p.Limits.shorten(r, len(rec.Headers))
	c.p.pending = append(c.p.pending, r)
}
