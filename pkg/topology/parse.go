package topology

import (
	"regexp"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// maxTopic is the longest topic name that Kafka takes.
const maxTopic = 249

var legalTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// Parse builds the topology of an application from the list of its streams. Mistakes are reported to the file that
// the node is of; the result is nil if there are any.
func Parse(app string, streams yamlnode.Node) *Topology { return ParsePrefixed("", app, streams) }

// ParsePrefixed is Parse with a prefix before the name of every topic that the file names. The app's name has it already.
func ParsePrefixed(prefix, app string, streams yamlnode.Node) *Topology {
	b := &builder{app: app, prefix: prefix, streams: make(map[string]bool), stores: make(map[string]bool), sources: make(map[string]Source)}
	before := streams.Problems()
	if len(streams.List()) == 0 && streams.Problems() == before {
		streams.Errorf("say what to compute: streams: [{name: ..., from: {topic: ...}, steps: [...]}]", "no streams")
	}
	for _, node := range streams.List() {
		b.stream(node)
	}
	b.checkSinks()
	if streams.Problems() != before {
		return nil
	}
	return &Topology{App: app, Subtopologies: b.connect()}
}

// builder collects the segments of all streams, in the file's order.
type builder struct {
	app      string
	prefix   string // of the topics that the file names
	segments []*segment
	streams  map[string]bool
	stores   map[string]bool
	sources  map[string]Source // by topic, as first declared
	sinks    []placedSink
}

type placedSink struct {
	topic string
	node  yamlnode.Node
}

// stream reads one stream and cuts it into segments.
func (b *builder) stream(node yamlnode.Node) {
	m := node.Map()
	name := b.streamName(m)
	if name != "" {
		node = node.Named("stream " + name)
		m = node.Map()
		m.Get("name")
	}
	c := &cutter{builder: b, name: name, ok: true, ordinals: make(map[string]int)}
	c.from(m.Require("from", "name the topic to read: from: {topic: ...}"))
	steps := m.Require("steps", "list what to do with its records: steps: [...]")
	m.Done()
	for i, step := range steps.List() {
		c.step(step, i)
	}
	c.finish(steps)
}

func (b *builder) streamName(m *yamlnode.Map) string {
	n := m.Require("name", "give each stream a name of its own; default store names start with it")
	name := n.String("")
	switch {
	case name == "":
	case !legalTopic.MatchString(name):
		n.Errorf("use letters, digits, '.', '_' and '-'", "%q cannot be part of a topic's name", name)
	case b.streams[name]:
		n.Errorf("rename one of them", "a second stream is called %q", name)
	}
	b.streams[name] = true
	return name
}

// from reads the source of the stream and starts its first segment.
func (c *cutter) from(node yamlnode.Node) {
	s := &segment{stream: c.name, key: String, value: String}
	c.segment = s
	c.segments = append(c.segments, s)
	if !node.Exists() {
		c.ok = false
		return
	}
	c.source = Source{Start: Earliest, OnOutOfRange: Fail, OnError: Stop}
	if node.IsMap() {
		m := node.Map()
		c.source.Topic = c.topicName(m.Require("topic", ""))
		s.key, s.value = format(m.Get("key")), format(m.Get("value"))
		c.source.Start = Start(m.Get("start").Enum(string(Earliest), string(Earliest), string(Latest)))
		c.source.OnOutOfRange = Start(m.Get("on_out_of_range").Enum(string(Fail), string(Fail), string(Earliest), string(Latest)))
		c.source.OnError = Policy(m.Get("on_error").Enum(string(Stop), string(Stop), string(Skip), string(DeadLetter)))
		c.deadLetter(m.Get("dead_letter"))
		m.Done()
	} else {
		c.source.Topic = c.topicName(node)
	}
	s.source = c.source
	if c.source.Topic == "" {
		c.ok = false
		return
	}
	if internalName(c.app, c.source.Topic) {
		node.Errorf("read another topic, or add the steps to the stream that feeds it", "%s is an internal topic of this application", c.source.Topic)
	}
	if first, seen := c.sources[c.source.Topic]; !seen {
		c.sources[c.source.Topic] = c.source
	} else if first != c.source {
		node.Errorf("streams that read one topic run in one task: give both the same start, on_out_of_range, on_error and dead_letter",
			"topic %s is also read by an earlier stream, with other settings", c.source.Topic)
	}
	c.begin(s)
}

func (c *cutter) deadLetter(node yamlnode.Node) {
	if c.source.OnError == DeadLetter {
		c.source.DeadLetterTopic = c.app + "-dead-letter"
	}
	if !node.Exists() {
		return
	}
	if c.source.OnError != DeadLetter {
		node.Errorf("add on_error: dead_letter, or leave it out", "no record goes to a dead letter topic under on_error: %s", c.source.OnError)
		return
	}
	c.source.DeadLetterTopic = c.topicName(node)
	if c.source.DeadLetterTopic == c.source.Topic {
		node.Errorf("name another topic", "bad records would be read again and again: %s is the topic that they come from", c.source.Topic)
	}
}

// checkSinks finds sinks that would write into the application's own internal topics.
func (b *builder) checkSinks() {
	for _, s := range b.sinks {
		if internalName(b.app, s.topic) {
			s.node.Errorf("write to another topic", "%s is an internal topic of this application", s.topic)
		}
	}
}

func internalName(app, topic string) bool {
	return topic == app+"-control" || strings.HasPrefix(topic, app+"-") &&
		(strings.HasSuffix(topic, "-changelog") || strings.HasSuffix(topic, "-repartition"))
}

// topicName reads a topic's name, and prefixes it; "" if it is absent or cannot be one.
func (b *builder) topicName(n yamlnode.Node) string {
	name, ok := n.Text()
	if ok {
		name = n.String("")
	}
	switch {
	case !ok && n.Exists():
		n.Errorf("", "want the name of a topic")
	case name == "":
	case !legalTopic.MatchString(name) || name == "." || name == "..":
		n.Errorf("Kafka takes letters, digits, '.', '_' and '-'", "%q cannot be a topic's name", name)
	case len(b.prefix+name) > maxTopic:
		n.Errorf("", "the topic's name has %d characters, Kafka takes %d", len(b.prefix+name), maxTopic)
	default:
		return b.prefix + name
	}
	return ""
}

// format reads the name of a format, by default string.
func format(n yamlnode.Node) Format {
	name := n.Enum(formatNames[String], formatNames...)
	return Format(max(0, slices.Index(formatNames, name)))
}

// connect groups the segments that read the same topic into subtopologies. They are numbered by their first
// segment: streams in the file's order, segments from the source on. So a stream added at the end
// leaves the numbers of the others alone.
func (b *builder) connect() []*Subtopology {
	byTopic := make(map[string]*Subtopology)
	var out []*Subtopology
	for _, seg := range b.segments {
		s := byTopic[seg.source.Topic]
		if s == nil {
			s = &Subtopology{ID: int32(len(out)), Sources: []Source{seg.source}}
			byTopic[seg.source.Topic] = s
			out = append(out, s)
		}
		s.segments = append(s.segments, seg)
		s.Stores = append(s.Stores, seg.stores...)
		for _, sink := range seg.sinks {
			if !slices.ContainsFunc(s.Sinks, func(o Sink) bool { return o.Topic == sink.Topic }) {
				s.Sinks = append(s.Sinks, sink)
			}
		}
		s.Stateful = len(s.Stores) > 0
	}
	return out
}
