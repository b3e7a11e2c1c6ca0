package topology

import (
	"fmt"
	"log/slog"
	"slices"

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
	// of the key's hash, as Kafka's clients choose it; -2-n for that of its first n bytes: a window does not count.
	Emit(r *kgo.Record)
}

// Records is implemented by an Output that has memory for the records itself.
type Records interface {
	// NewRecord returns a record to be filled in, zero but for its Context. It is emitted or forgotten.
	NewRecord() *kgo.Record
}

// Counters count since the processor was made. Read them between calls of Process.
type Counters struct {
	In           uint64 // records processed, bad ones too
	Out          uint64 // records emitted, dead letters not counted
	Skipped      uint64 // bad records passed over by on_error: skip, in whole or in part
	DeadLettered uint64 // bad records written to a dead letter topic
	NullKeys     uint64 // records that did not reach an aggregate for want of a key
	NullValues   uint64 // the same for want of a value
}

// operator is one step of a running chain: it changes m, hands it on to the next step as often as there are
// results, and may leave m changed.
type operator interface {
	process(m *message) error
}

// Processor computes one task. It is used by one goroutine at a time.
type Processor struct {
	Counters
	Late uint64 // records that came too late for every window
	// Limits are those of the producer: what is larger makes a bad record. They are set before the first call.
	Limits Limits

	chains    [][]*chain // by source
	stores    map[string]Store
	globals   map[string]*GlobalTable
	late      map[string]*emitter // by store, of the aggregates whose results wait for a commit
	current   *chain              // whose record is processed, or whose results are sent on
	rollbacks uint64              // that have changed stores
	records   uint64              // that are done, or whatever else writes as a whole
	ticking   []*customOperator   // that have timers by the wall clock
	out       Output
	log       *slog.Logger  // nil: nothing is logged
	pending   []*kgo.Record // outputs of the current record
	journal   journal
	eval      evaluator
	slabs     slabs
	done      int
}

// NewProcessor makes a processor for one task of s; stores are in the order of s.Stores, and global tables in that of s.Globals.
func (s *Subtopology) NewProcessor(stores []Store, out Output, globals ...*GlobalTable) (*Processor, error) {
	if len(stores) != len(s.Stores) {
		return nil, fmt.Errorf("subtopology %d has %d stores, got %d", s.ID, len(s.Stores), len(stores))
	}
	if len(globals) != len(s.Globals) {
		return nil, fmt.Errorf("subtopology %d looks into %d global tables, got %d", s.ID, len(s.Globals), len(globals))
	}
	p := &Processor{
		globals: make(map[string]*GlobalTable, len(globals)),
		chains:  make([][]*chain, len(s.Sources)),
		stores:  make(map[string]Store, len(stores)),
		late:    make(map[string]*emitter),
		out:     out,
		eval:    evaluator{env: make(map[string]any)},
	}
	p.slabs.from, _ = out.(Records)
	for i, spec := range s.Stores {
		p.stores[spec.Name] = stores[i]
		if _, ok := stores[i].(OrderedStore); spec.Ordered() && !ok {
			return nil, fmt.Errorf("store %s needs to be read in order of its keys", spec.Name)
		}
	}
	for i, g := range s.Globals {
		p.globals[g.Name] = globals[i]
	}
	a := &assembly{p: p, chains: make(map[*segment]*chain), waits: slices.ContainsFunc(s.segments, (*segment).waits)}
	for i, source := range s.Sources {
		segments := s.reading(source.Topic)
		for _, seg := range segments {
			p.chains[i] = append(p.chains[i], a.segment(seg, len(segments) > 1))
		}
	}
	return p, a.err
}

// reading returns the segments that start from a topic.
func (s *Subtopology) reading(topic string) []*segment {
	var out []*segment
	for _, seg := range s.segments {
		if seg.reads() && seg.source.Topic == topic {
			out = append(out, seg)
		}
	}
	return out
}

// Process takes a batch of records of one source, by its index in Subtopology.Sources, in order of offset. The
// bytes that they refer to must stay as they are: outputs may share them. The records themselves are not kept.
//
// An error that a record is to blame for is a *RecordError. Done then tells how many records before it are
// fully processed, and the bad one has left no trace in stores and output: it may be processed again. Any other
// error comes from a store, and leaves the processor unusable.
func (p *Processor) Process(source int, recs []*kgo.Record) error {
	chains := p.chains[source]
	p.done = 0
	for _, rec := range recs {
		before, late := p.Counters, p.Late
		p.In++
		for _, c := range chains {
			if err := c.process(rec); err != nil {
				p.rollback(mark{})
				p.Counters, p.Late = before, late
				return err
			}
		}
		p.settle()
		p.done++
	}
	return nil
}

// Done returns how many records of the last batch were fully processed.
func (p *Processor) Done() int { return p.done }

// chain runs one segment. That of a topic decodes a record, sends it through the operators, those of the segments
// that follow too, and applies the source's policy to what goes wrong.
type chain struct {
	p         *Processor
	seg       *segment
	assembly  *assembly         // while steps are started
	others    map[step]operator // second inputs of steps
	first     operator
	m         message
	bad       bool // the current record is counted as bad, and has its dead letter
	deepKey   bool // some expression looks into keys, or values: JSON is decoded at once
	deepValue bool
	byField   bool // expressions look at fields of the value only, which are in fields
	fields    fields
	journaled bool     // writes to stores may have to be taken back
	late      *emitter // whose results are sent on, at a commit; nil while a record is processed
	timer     string   // the step whose timer by the wall clock is called; "": none
}

func (c *chain) process(rec *kgo.Record) error {
	c.bad, c.p.current = false, c
	m, before := &c.m, c.p.mark()
	m.source, m.ts = rec, rec.Timestamp.UnixMilli()
	var err error
	// Without a codec the datum is not copied once more: that shows, as it is done for each record.
	if k := &c.seg.key; k.Codec == nil {
		m.key, err = decodeDatum(k.Format, rec.Key, c.deepKey)
	} else {
		m.key, err = k.read(rec.Key, c.deepKey)
	}
	if err != nil {
		return c.failed(before, fault{fmt.Errorf("key: %w", err)})
	}
	if v := &c.seg.value; c.byField {
		m.value, err = c.fields.datum(rec.Value)
	} else if v.Codec == nil {
		m.value, err = decodeDatum(v.Format, rec.Value, c.deepValue)
	} else {
		m.value, err = v.read(rec.Value, c.deepValue)
	}
	if err != nil {
		return c.failed(before, fault{fmt.Errorf("value: %w", err)})
	}
	if err := c.first.process(m); err != nil {
		return c.failed(before, err)
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
