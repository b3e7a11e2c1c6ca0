package topology

import (
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/topology/window"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// windowOf reads the windows of an aggregate and where late records go.
func (c *cutter) windowOf(node yamlnode.Node) (w *window.Spec, late *sinkStep) {
	const example = "window: {tumbling: 1m}, {hopping: 5m, every: 1m}, {sliding: 30s} or {session: 10m}"
	if !node.Exists() {
		return nil, nil
	}
	if !node.IsMap() {
		node.Errorf(example, "want a kind of window and its size")
		return nil, nil
	}
	m := node.Map()
	var found []string
	w = &window.Spec{}
	for i, name := range window.Names() {
		n := m.Get(name)
		size := span(n, time.Millisecond)
		if n.Exists() {
			found = append(found, name)
			w.Kind, w.Size, w.Advance = window.Kind(i), size, size
		}
	}
	every := m.Get("every")
	advance := span(every, time.Millisecond)
	w.Grace, w.Retain = span(m.Get("grace"), 0), span(m.Get("retention"), 0)
	if n := m.Get("late"); n.Exists() {
		late = c.lateTo(n)
	}
	m.Done()
	switch {
	case len(found) != 1:
		node.Errorf(example, "want one kind of window, got %s", describeNames(found))
		return nil, nil
	case w.Kind == window.Hopping && !every.Exists():
		node.Errorf("window: {hopping: 5m, every: 1m}", "every is missing: how far windows begin from each other")
		return nil, nil
	case w.Kind != window.Hopping && every.Exists():
		every.Errorf("hopping windows begin before others end: window: {hopping: 5m, every: 1m}", "only hopping windows have it")
		return nil, nil
	case w.Kind == window.Hopping && advance > w.Size:
		every.Errorf("", "%s is longer than the window: records would fall in between", yamlnode.FormatDuration(time.Duration(advance)*time.Millisecond))
		return nil, nil
	case w.Kind == window.Hopping && advance > 0 && w.Size/advance > window.MaxOverlap:
		every.Errorf("", "each record would be in %d windows, more than %d", w.Size/advance, window.MaxOverlap)
		return nil, nil
	case w.Kind == window.Hopping:
		w.Advance = advance
	}
	return w, late
}

// span reads a length of time in ms, 0 by default.
func span(n yamlnode.Node, least time.Duration) int64 {
	return n.Duration(0, least, time.Duration(window.MaxSize)*time.Millisecond).Milliseconds()
}

func describeNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " and ")
}

// lateTo is the sink of late records, in the formats that they have here.
func (c *cutter) lateTo(n yamlnode.Node) *sinkStep {
	s := &sinkStep{fromKey: c.key, fromValue: c.value}
	if s.Topic = c.topicName(n); s.Topic == "" {
		return nil
	}
	s.Key, s.Value = Serde{Format: c.key}, Serde{Format: c.value}
	s.topics = []string{s.Topic}
	c.sinks = append(c.sinks, placedSink{topic: s.Topic, node: n})
	return s
}

// checkUnwindowed reports a step that would take a key with a window for a plain one.
func (c *cutter) checkUnwindowed(at yamlnode.Node) bool {
	if c.window == nil {
		return true
	}
	at.Errorf("say what is one from here on: - rekey: key, or e.g. - rekey: key + \" \" + string(window_start)", "the key has a window here")
	return false
}
