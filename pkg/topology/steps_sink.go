package topology

import (
	"fmt"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// to adds a sink.
func (c *cutter) to(arg, at yamlnode.Node) {
	s := &sinkStep{fromKey: c.key, fromValue: c.value}
	s.Window = c.window
	key, value := at, at // where what does not fit is reported
	switch {
	case arg.IsMap():
		m := arg.Map()
		c.toTopics(s, arg, m)
		keyAs, valueAs := m.Get("key"), m.Get("value")
		s.Key = c.serde(keyAs, use{written: true, topic: s.Topic, part: "key"})
		s.Value = c.serde(valueAs, use{written: true, topic: s.Topic, part: "value"})
		if keyAs.Exists() {
			key = keyAs
		}
		if valueAs.Exists() {
			value = valueAs
		}
		c.toKey(s, m.Get("key_expr"))
		c.toHeaders(s, m.Get("headers"))
		m.Done()
	case !arg.Exists():
		at.Errorf("to: {topic: ...}", "topic is missing")
	default:
		c.toTopic(s, arg)
	}
	if len(s.topics) == 0 {
		return
	}
	c.checkFit("key", s.fromKey, s.Key, s.topics[0], key)
	c.checkFit("value", s.fromValue, s.Value, s.topics[0], value)
	if c.ok && c.mustNotFail() {
		switch {
		case s.topic != nil:
			c.refuse("computed topic", at)
		case s.Key.mayFail(s.fromKey) || s.Value.mayFail(s.fromValue):
			c.refuse("change of format", at)
		}
	}
	for _, topic := range s.topics {
		one := s.Sink
		one.Topic = topic
		c.segment.sinks = append(c.segment.sinks, one)
	}
	c.add(s)
}

// toTopics reads a topic, or an expression and the topics that it may give.
func (c *cutter) toTopics(s *sinkStep, arg yamlnode.Node, m *yamlnode.Map) {
	topic, text, topics := m.Get("topic"), m.Get("topic_expr"), m.Get("topics")
	if !text.Exists() {
		if topics.Exists() {
			topics.Errorf("add topic_expr: EXPRESSION, or leave it out", "nothing chooses among several topics")
		} else if !topic.Exists() {
			arg.Errorf("to: {topic: ...}, or to: {topic_expr: ..., topics: [...]}", "topic is missing")
		} else {
			c.toTopic(s, topic)
		}
		return
	}
	if topic.Exists() {
		topic.Errorf("remove one of them", "topic_expr is given as well")
	}
	e := c.expression(text)
	if e != nil && e.typ != (resultType{format: String}) && e.typ != (resultType{format: JSON}) {
		text.ExprErrorf(1, 0, "give the name of a topic", "a topic's name is text, this gives %s", e.typ)
		return
	}
	s.topic, s.names = e, make(map[string]string)
	for _, n := range topics.List() {
		c.toTopic(s, n)
		name := n.String("")
		s.names[name], s.Topic = s.Topic, ""
	}
	if !topics.Exists() {
		text.Errorf("write topics: [...] beside it; all of them must exist", "the topics that it may give are missing")
	}
	if e == nil {
		s.topics = nil
	}
}

// toTopic reads the name of one topic.
func (c *cutter) toTopic(s *sinkStep, n yamlnode.Node) {
	if s.Topic = c.topicName(n); s.Topic != "" {
		s.topics = append(s.topics, s.Topic)
		c.sinks = append(c.sinks, placedSink{topic: s.Topic, node: n})
	}
}

// toKey reads the expression of the key, which is that of what is written only.
func (c *cutter) toKey(s *sinkStep, n yamlnode.Node) {
	if !n.Exists() {
		return
	}
	if s.key = c.expression(n); s.key == nil {
		s.topics = nil
		return
	}
	f, ok := s.key.format(c.key)
	if !ok {
		s.topics = nil
	}
	s.fromKey, s.Window = f, nil
}

func (c *cutter) toHeaders(s *sinkStep, n yamlnode.Node) {
	if !n.Exists() {
		return
	}
	m := n.Map()
	for _, name := range m.Names() {
		text := m.Get(name)
		e := c.expression(text)
		switch {
		case e == nil:
			s.topics = nil
		case e.typ.shape == list || e.typ.shape == opaque:
			text.ExprErrorf(1, 0, "give text, a number, true or false, or nil to remove the header", "this gives %s", e.typ)
		default:
			s.headers = append(s.headers, headerOf{name: name, value: e})
		}
	}
}

// checkFit reports a key or value that cannot be written as the sink says.
func (c *cutter) checkFit(what string, have Format, want Serde, topic string, node yamlnode.Node) {
	if !c.ok || want.fitOf(have) != misfits {
		return
	}
	hint := fmt.Sprintf("write %s: %s in the sink", what, have)
	if want.Codec != nil {
		hint += ", or make an object of it before"
	}
	if convert := conversion(have, want.Format); convert != "" && what == "value" {
		hint += fmt.Sprintf(", or convert it before: - map: %s(value)", convert)
	} else if convert != "" {
		hint += fmt.Sprintf(", or convert it before: - rekey: %s(key)", convert)
	}
	node.Errorf(hint, "the %s is %s here, but topic %s is written as %s", what, have, topic, want)
}

func conversion(have, want Format) string {
	switch want {
	case String:
		return "string"
	case Int, Float:
		if have != Bytes {
			return want.String()
		}
	default:
	}
	return ""
}
