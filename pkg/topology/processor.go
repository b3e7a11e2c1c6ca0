package topology

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Store is what a processor needs of a task's store.
type Store interface {
	// Get returns the value of a key and whether there is one. The value is valid until the key's next change.
	Get(key []byte) (value []byte, ok bool, err error)
	// Put and Delete copy what they are given.
	Put(key, value []byte)
	Delete(key []byte)
}

// Output takes the records that a processor writes.
type Output interface {
	// Emit takes over r, its key and its value; none of them is written to again. Partition -1 asks for the partition
	// of the key's hash, as Kafka's clients choose it.
	Emit(r *kgo.Record)
}

// Counters count since the processor was made. Read them between calls of Process.
type Counters struct {
	In           uint64 // records processed, bad ones too
	Out          uint64 // records emitted, dead letters not counted
	Skipped      uint64 // records dropped by on_error: skip
	DeadLettered uint64 // records that went to a dead letter topic
	NullKeys     uint64 // records that did not reach an aggregate for want of a key
	NullValues   uint64 // the same for want of a value
}

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

// operator is one step of a running chain: it changes m, hands it on to the next step as often as there are
// results, and may leave m changed.
type operator interface {
	process(m *message) error
}

// Processor computes one task. It is used by one goroutine at a time.
type Processor struct {
	Counters
	chains [][]*chain // by source
	stores map[string]Store
	out    Output
	eval   evaluator
	slabs  slabs
	done   int
}

// NewProcessor makes a processor for one task of s; stores are in the order of s.Stores.
func (s *Subtopology) NewProcessor(stores []Store, out Output) (*Processor, error) {
	if len(stores) != len(s.Stores) {
		return nil, fmt.Errorf("subtopology %d has %d stores, got %d", s.ID, len(s.Stores), len(stores))
	}
	p := &Processor{
		chains: make([][]*chain, len(s.Sources)),
		stores: make(map[string]Store, len(stores)),
		out:    out,
		eval:   evaluator{env: make(map[string]any)},
	}
	for i, spec := range s.Stores {
		p.stores[spec.Name] = stores[i]
	}
	for i, source := range s.Sources {
		for _, seg := range s.segments {
			if seg.source.Topic == source.Topic {
				p.chains[i] = append(p.chains[i], seg.start(p))
			}
		}
	}
	return p, nil
}

// Process takes a batch of records of one source, by its index in Subtopology.Sources, in order of offset. The
// records' bytes must stay as they are: outputs may share them. An error that a record is to blame for is a
// *RecordError, any other comes from a store; Done then tells how many records before it are fully processed.
func (p *Processor) Process(source int, recs []*kgo.Record) error {
	chains := p.chains[source]
	p.done = 0
	for _, rec := range recs {
		for _, c := range chains {
			if err := c.process(rec); err != nil {
				return err
			}
		}
		p.In++
		p.done++
	}
	return nil
}

// Done returns how many records of the last batch were fully processed.
func (p *Processor) Done() int { return p.done }

// chain runs one segment: decodes a record, sends it through the operators, and applies the source's policy
// to what goes wrong.
type chain struct {
	p         *Processor
	seg       *segment
	first     operator
	m         message
	dead      bool // the current record has its dead letter
	deepKey   bool // some expression looks into keys, or values: JSON is decoded at once
	deepValue bool
}

// start builds the operators of a segment from its last step to its first.
func (s *segment) start(p *Processor) *chain {
	c := &chain{p: p, seg: s, deepKey: s.uses&usesKey != 0, deepValue: s.uses&usesValue != 0}
	var next operator = end{}
	for i := len(s.steps) - 1; i >= 0; i-- {
		next = s.steps[i].start(c, next)
	}
	c.first = next
	return c
}

// end is what follows the last step.
type end struct{}

func (end) process(*message) error { return nil }

func (c *chain) process(rec *kgo.Record) error {
	c.dead = false
	m := &c.m
	m.source, m.ts = rec, rec.Timestamp.UnixMilli()
	var err error
	if m.key, err = decodeDatum(c.seg.key, rec.Key, c.deepKey); err != nil {
		return c.failed(fault{fmt.Errorf("key: %w", err)})
	}
	if m.value, err = decodeDatum(c.seg.value, rec.Value, c.deepValue); err != nil {
		return c.failed(fault{fmt.Errorf("value: %w", err)})
	}
	if err := c.first.process(m); err != nil {
		return c.failed(err)
	}
	return nil
}

// failed applies the source's on_error to the current record. nil: go on.
func (c *chain) failed(err error) error {
	var blame fault
	rec := c.m.source
	if !errors.As(err, &blame) {
		return err
	}
	switch c.seg.source.OnError {
	case Skip:
		c.p.Skipped++
	case DeadLetter:
		if !c.dead {
			c.p.deadLetter(c.seg.source.DeadLetterTopic, rec, blame)
			c.dead = true
		}
	default:
		var placed *RecordError
		if errors.As(err, &placed) {
			return err
		}
		return &RecordError{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Stream: c.seg.stream, Err: blame.error}
	}
	return nil
}

// complete reports whether m has what every aggregate needs, and counts it otherwise.
func (p *Processor) complete(m *message) bool {
	switch {
	case m.key.null:
		p.NullKeys++
		return false
	case m.value.null:
		p.NullValues++
		return false
	default:
		return true
	}
}

func (p *Processor) deadLetter(topic string, rec *kgo.Record, err error) {
	p.DeadLettered++
	r := p.slabs.record()
	r.Topic, r.Partition = topic, -1
	r.Key, r.Value, r.Timestamp = rec.Key, rec.Value, rec.Timestamp
	r.Headers = append(rec.Headers[:len(rec.Headers):len(rec.Headers)],
		kgo.RecordHeader{Key: HeaderError, Value: []byte(err.Error())},
		kgo.RecordHeader{Key: HeaderTopic, Value: []byte(rec.Topic)},
		kgo.RecordHeader{Key: HeaderPartition, Value: strconv.AppendInt(nil, int64(rec.Partition), 10)},
		kgo.RecordHeader{Key: HeaderOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)})
	p.out.Emit(r)
}
