package topology

import (
	"fmt"
	"slices"
	"strings"
)

// String draws the topology as text, one subtopology after the other.
func (t *Topology) String() string {
	var b strings.Builder
	for i, s := range t.Subtopologies {
		if i > 0 {
			b.WriteByte('\n')
		}
		kind := "stateless"
		if s.Stateful {
			kind = "stateful"
		}
		fmt.Fprintf(&b, "subtopology %d (%s)\n", s.ID, kind)
		for _, seg := range s.segments {
			fmt.Fprintf(&b, "  %s %s\n    from %s (key %s, value %s)\n", seg.kind(), seg.stream, seg.origin(), seg.key, seg.value)
			for _, text := range seg.stepTexts() {
				fmt.Fprintf(&b, "    %s\n", text)
			}
		}
	}
	for _, g := range t.Globals {
		fmt.Fprintf(&b, "\nglobal table %s\n    from %s (key %s, value %s)\n", g.Name, g.Topic, g.Key, g.Value)
	}
	return b.String()
}

// edge is an arrow of a drawing; nodes are named by what they show.
type edge struct{ from, to string }

// box is a step in a drawing.
type box struct {
	id, label string
	stream    string // or table, to which the step belongs
	stores    []StoreSpec
}

// drawing is a subtopology as boxes and arrows; topics are nodes shared by all of them.
type drawing struct {
	boxes []box
	edges []edge
}

func (s *Subtopology) drawing(topic func(string) string) drawing {
	var d drawing
	ends := make(map[*segment][]string) // what the records of a segment come out of
	var last func(seg *segment) []string
	last = func(seg *segment) []string {
		if ids, ok := ends[seg]; ok {
			return ids
		}
		var ids []string
		if seg.reads() {
			ids = []string{topic(seg.source.Topic)}
		}
		for _, f := range seg.follows {
			ids = append(ids, last(f.seg)...)
		}
		i := slices.Index(s.segments, seg)
		for j, one := range seg.steps {
			if _, ok := one.(*sinkStep); !ok {
				ids = []string{boxID(s.ID, i, j)}
			}
		}
		if seg.copies() {
			ids = []string{copyID(s.ID, i)}
		}
		ends[seg] = ids
		return ids
	}
	for i, seg := range s.segments {
		var from []string
		if seg.reads() {
			from = []string{topic(seg.source.Topic)}
		}
		for _, f := range seg.follows {
			from = append(from, last(f.seg)...)
		}
		texts, stream := seg.stepTexts(), seg.kind()+" "+seg.stream
		if seg.copies() {
			d.boxes = append(d.boxes, box{id: copyID(s.ID, i), label: "copy", stream: stream})
			d.connect(from, copyID(s.ID, i))
			from = []string{copyID(s.ID, i)}
		}
		for j, one := range seg.steps {
			if sink, ok := one.(*sinkStep); ok {
				for _, name := range sink.topics {
					d.connect(from, topic(name))
				}
				continue
			}
			b := box{id: boxID(s.ID, i, j), label: texts[j], stream: stream}
			if k, ok := one.(keeping); ok {
				b.stores = k.keeps()
			}
			d.boxes = append(d.boxes, b)
			d.connect(from, b.id)
			if k, ok := one.(joining); ok {
				d.connect(last(k.joins().seg), b.id)
			}
			from = []string{b.id}
		}
	}
	return d
}

// keeping is a step with stores.
type keeping interface{ keeps() []StoreSpec }

func boxID(sub int32, segment, step int) string { return fmt.Sprintf("s%d_%d_%d", sub, segment, step) }

func copyID(sub int32, segment int) string { return fmt.Sprintf("s%d_%d", sub, segment) }

// copies reports whether the segment does nothing but write, so that it has no step to be drawn.
func (s *segment) copies() bool {
	return !slices.ContainsFunc(s.steps, func(one step) bool { _, ok := one.(*sinkStep); return !ok })
}

func (d *drawing) connect(from []string, to string) {
	for _, id := range from {
		d.edges = append(d.edges, edge{id, to})
	}
}

// topicIDs numbers topics in the order in which they are first asked for.
type topicIDs struct {
	ids   map[string]string
	order []string
}

func (t *topicIDs) id(topic string) string {
	if id, ok := t.ids[topic]; ok {
		return id
	}
	id := fmt.Sprintf("t%d", len(t.order))
	t.ids[topic] = id
	t.order = append(t.order, topic)
	return id
}
