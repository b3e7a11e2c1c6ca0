package topology

import (
	"errors"
	"slices"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// place is what is known of the records between two steps.
type place struct {
	key, value Format
	source     Source       // of the records; of those of several sources, one whose policy is the strictest
	table      bool         // they are changes of a table: a row each, and null where it was deleted
	window     *window.Spec // the key is followed by a window; nil: it is not
	bounds     bool         // those of a window are known
	keyChanged bool         // since the records were last partitioned by key
	// sourceKey and sourceValue say that they are still what the source root has.
	sourceKey, sourceValue bool
	root                   *segment
	atCommit               bool       // an aggregate before emits at commits, and nothing lies between that records are written to
	nullable               bool       // the value is an aggregate's or a table's, and may be null
	rows                   *StoreSpec // of a table: the store that holds the rows as they are here; nil: none does
}

// flow is where records can be taken up by other segments: at the end of one, or at a branch.
type flow struct {
	place
	seg    *segment
	branch string // "": the end of the segment
	read   bool   // a step looks into the table's rows
	taps   []tap  // in the order in which the file is read
}

// tap is what takes records up: a segment that follows, or a step of another one.
type tap struct {
	seg  *segment
	step joining
}

// joining is a step with a second input.
type joining interface {
	step
	joins() *flow // the second input; start leaves its operator in the chain's others
}

func (f *flow) String() string {
	kind := "stream "
	if f.table {
		kind = "table "
	}
	text := kind + f.seg.stream
	if f.branch != "" {
		text += ", branch " + f.branch
	}
	return text
}

// merged is the place where the records of several flows come together.
func merged(flows []*flow) place {
	p := flows[0].place
	for _, f := range flows[1:] {
		p.keyChanged = p.keyChanged || f.keyChanged
		p.atCommit = p.atCommit || f.atCommit
		p.nullable = p.nullable || f.nullable
		p.bounds = p.bounds && f.bounds
		p.sourceKey, p.sourceValue = false, false
		if f.source.OnError == Stop {
			p.source = f.source
		}
	}
	return p
}

// assembly starts the segments of a subtopology for one processor.
type assembly struct {
	p      *Processor
	chains map[*segment]*chain
	waits  bool  // a record may have to wait in some segment
	err    error // of a step that could not be started
}

func (a *assembly) failed(err error) { a.err = errors.Join(a.err, err) }

// segment returns the running form of a segment, which is the same for all that lead to it.
func (a *assembly) segment(s *segment, shared bool) *chain {
	if c := a.chains[s]; c != nil {
		return c
	}
	c := &chain{
		p: a.p, seg: s, assembly: a, others: make(map[step]operator),
		deepKey: s.uses&usesKey != 0, deepValue: s.uses&usesValue != 0,
		byField:   s.uses&(usesValue|usesFields) == usesFields && s.value.Format == JSON && s.value.Codec == nil,
		journaled: s.undoes(shared, a.waits),
	}
	next := a.flow(s.end)
	for i := len(s.steps) - 1; i >= 0; i-- {
		next = s.steps[i].start(c, next)
	}
	c.first = next
	a.chains[s] = c
	return c
}

// flow returns what comes behind a flow.
func (a *assembly) flow(f *flow) operator {
	outs := make([]operator, 0, len(f.taps))
	for _, t := range f.taps {
		c := a.segment(t.seg, true)
		if t.step != nil {
			outs = append(outs, c.others[t.step])
		} else {
			outs = append(outs, c.first)
		}
	}
	switch len(outs) {
	case 0:
		return end{}
	case 1:
		return outs[0]
	default:
		return &fanOut{outs: outs}
	}
}

// fanOut hands each message on to several operators.
type fanOut struct {
	outs []operator
	m    message
}

func (o *fanOut) process(m *message) error {
	for _, out := range o.outs {
		o.m = *m
		if err := out.process(&o.m); err != nil {
			return err
		}
	}
	return nil
}

// end is what follows the last step.
type end struct{}

func (end) process(*message) error { return nil }

// position is where a segment's definition stands: the stream or table, in the file's order with tables last, and the
// segment's number in it.
type position struct{ entry, segment int }

func (p position) compare(q position) int {
	if p.entry != q.entry {
		return p.entry - q.entry
	}
	return p.segment - q.segment
}

// connect groups the segments into subtopologies: those that read the same topic, that follow each other without a topic in
// between, and that a step joins. They are numbered by their first segment: streams in the file's order, segments from the
// source on, then tables. So a stream added at the end leaves the numbers of the other streams alone.
func (b *builder) connect() []*Subtopology {
	group := make(map[*segment]*segment, len(b.segments)) // by representative
	var find func(s *segment) *segment
	find = func(s *segment) *segment {
		if group[s] == nil || group[s] == s {
			return s
		}
		group[s] = find(group[s])
		return group[s]
	}
	unite := func(s, t *segment) { group[find(s)] = find(t) }
	readers := make(map[string]*segment)
	for _, s := range b.segments {
		for _, f := range slices.Concat(s.follows, s.joins) {
			unite(s, f.seg)
		}
		if !s.reads() {
			continue
		}
		if first := readers[s.source.Topic]; first != nil {
			unite(s, first)
		} else {
			readers[s.source.Topic] = s
		}
	}
	byGroup := make(map[*segment]*Subtopology)
	var out []*Subtopology
	for _, s := range slices.SortedStableFunc(slices.Values(b.segments), func(s, t *segment) int { return s.at.compare(t.at) }) {
		sub := byGroup[find(s)]
		if sub == nil {
			sub = &Subtopology{ID: int32(len(out))}
			byGroup[find(s)] = sub
			out = append(out, sub)
		}
		sub.add(s)
	}
	// What a store's results may change at a commit comes behind it: segments were read before those that follow them.
	for _, s := range b.segments {
		sub := byGroup[find(s)]
		sub.Stores = append(sub.Stores, s.stores...)
		sub.Stateful = len(sub.Stores) > 0
	}
	return out
}

func (s *Subtopology) add(seg *segment) {
	s.segments = append(s.segments, seg)
	for _, g := range seg.globals {
		if !slices.Contains(s.Globals, g) {
			s.Globals = append(s.Globals, g)
		}
	}
	if seg.reads() && !slices.ContainsFunc(s.Sources, func(o Source) bool { return o.Topic == seg.source.Topic }) {
		s.Sources = append(s.Sources, seg.source)
	}
	for _, sink := range seg.sinks {
		if !slices.ContainsFunc(s.Sinks, func(o Sink) bool { return o.Topic == sink.Topic }) {
			s.Sinks = append(s.Sinks, sink)
		}
	}
}
