package topology

import (
	"regexp"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/format"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// maxTopic is the longest topic name that Kafka takes.
const maxTopic = 249

var legalTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// Definition is the part of a configuration file that says what to compute.
type Definition struct {
	App             string
	Prefix          string          // before the name of every topic that the file names; the app's name has it already
	Dir             string          // of the file: paths of schemas start there
	Registry        format.Registry // nil: there is none
	Tables, Streams yamlnode.Node
}

// Parse builds the topology of an application from the list of its streams. Mistakes are reported to the file that
// the node is of; the result is nil if there are any.
func Parse(app string, streams yamlnode.Node) *Topology {
	return ParsePrefixed("", app, streams)
}

// ParsePrefixed is Parse with a prefix before the name of every topic that the file names. The app's name has it already.
func ParsePrefixed(prefix, app string, streams yamlnode.Node) *Topology {
	return Definition{App: app, Prefix: prefix, Tables: yamlnode.Absent(streams), Streams: streams}.Parse()
}

// Parse builds the topology. Mistakes are reported to the file that the nodes are of; the result is nil if there are any.
func (d Definition) Parse() *Topology {
	b := &builder{
		app: d.App, prefix: d.Prefix, dir: d.Dir, registry: d.Registry,
		entries: make(map[string]*entry), stores: make(map[string]bool), sources: make(map[string]Source),
	}
	before := d.Streams.Problems()
	streams, tables := d.Streams.List(), d.Tables.List()
	if len(streams)+len(tables) == 0 && d.Streams.Problems() == before {
		d.Streams.Errorf("say what to compute: streams: [{name: ..., from: {topic: ...}, steps: [...]}]", "no streams")
	}
	for _, node := range streams {
		b.declare(node, false)
	}
	for _, node := range tables {
		b.declare(node, true)
	}
	for _, e := range b.all {
		b.read(e)
	}
	for _, c := range b.cutters {
		c.finish()
	}
	b.checkSinks()
	if d.Streams.Problems() != before {
		return nil
	}
	return &Topology{App: d.App, Subtopologies: b.connect(), Globals: b.globals}
}

// builder collects the segments of all streams and tables; those that others take their records from come before these.
type builder struct {
	app      string
	prefix   string // of the topics that the file names
	dir      string
	registry format.Registry
	segments []*segment
	globals  []*Global
	all      []*entry // in the file's order, tables last
	entries  map[string]*entry
	cutters  []*cutter
	stores   map[string]bool
	sources  map[string]Source // by topic, as first declared
	sinks    []placedSink
}

type placedSink struct {
	topic string
	node  yamlnode.Node
}

// entry is a stream or a table of the file.
type entry struct {
	node   yamlnode.Node
	m      *yamlnode.Map
	name   string
	table  bool
	index  int
	state  entryState
	global *Global // nil: it is none
	ends   []*flow // behind its last step, or its branches; none if it is wrong
}

type entryState uint8

const (
	unread entryState = iota
	reading
	done
)

func (e *entry) kind() string {
	if e.table {
		return "table"
	}
	return "stream"
}

// declare reads the name of a stream or a table, under which others may take up its records.
func (b *builder) declare(node yamlnode.Node, table bool) {
	e := &entry{node: node, m: node.Map(), table: table, index: len(b.all)}
	b.all = append(b.all, e)
	n := e.m.Require("name", "give each stream a name of its own; default store names start with it")
	name := n.String("")
	switch other := b.entries[name]; {
	case name == "":
		return
	case !legalTopic.MatchString(name):
		n.Errorf("use letters, digits, '.', '_' and '-'", "%q cannot be part of a topic's name", name)
	case other != nil && other.table == table:
		n.Errorf("rename one of them", "a second %s is called %q", e.kind(), name)
	case other != nil:
		n.Errorf("rename one of them", "a %s is called %q too", other.kind(), name)
	}
	e.name = name
	if b.entries[name] == nil {
		b.entries[name] = e
	}
	e.node = node.Named(e.kind() + " " + name)
	e.m = e.node.Map()
	e.m.Get("name")
}

// read reads a stream or a table and cuts it into segments.
func (b *builder) read(e *entry) {
	if e.state != unread {
		return
	}
	e.state = reading
	c := &cutter{builder: b, entry: e, name: e.name, ok: true, ordinals: make(map[string]int)}
	b.cutters = append(b.cutters, c)
	from := e.m.Require("from", "name the topic to read: from: {topic: ...}")
	if e.table {
		c.steps, c.store, c.ttl = e.m.Get("steps"), e.m.Get("store"), e.m.Get("ttl")
	} else {
		c.steps = e.m.Require("steps", "list what to do with its records: steps: [...]")
	}
	if e.table && e.m.Get("global").Bool(false) {
		c.global(from)
		e.m.Done()
		e.state = done
		return
	}
	c.from(from)
	e.m.Done()
	for i, step := range c.steps.List() {
		c.step(step, i)
	}
	c.conclude()
	b.segments = append(b.segments, c.segments...)
	e.state = done
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
