package topology

import (
	"fmt"
	"time"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// joinStream joins two streams within a window of time.
func (c *cutter) joinStream(j joined, with *flow, f *joinFields, at yamlnode.Node) {
	s := &streamJoinStep{joined: j, with: with, before: f.older, after: f.younger, grace: f.patience}
	if !f.within.Exists() && !(f.before.Exists() && f.after.Exists()) {
		at.Errorf("join: {stream: NAME, within: 10s, ...}, or before: and after: how much older or younger the other record may be", "within is missing")
		c.ok = false
		return
	}
	name := c.storeName("join", f.store)
	if c.keyChanged {
		c.repartition(name+"-this", c.joinMode(j.kind != inner))
	}
	if s.with = with; with.keyChanged {
		s.with = c.repartitioned(with, name+"-other", c.joinMode(j.kind == outer))
	}
	s.mine, s.its = c.bufferOf(name+"-this", c.key, c.value), c.bufferOf(name+"-other", with.key, with.value)
	duration := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	s.mine.Of = fmt.Sprintf("%s join of streams, %s before and %s after", joinKinds[j.kind], duration(s.before), duration(s.after))
	s.its.Of = s.mine.Of
	for _, spec := range []StoreSpec{s.mine, s.its} {
		if !c.checkName(spec, RepartitionTopic(c.app, spec.Name), f.store, at) {
			c.ok = false
			return
		}
	}
	if !c.joinedValue(&s.joined, f.value, with.value) {
		return
	}
	c.segment.stores = append(c.segment.stores, s.mine, s.its)
	c.segment.joins = append(c.segment.joins, s.with)
	s.with.taps = append(s.with.taps, tap{seg: c.segment, step: s})
	c.add(s)
}

// bufferOf is the store of one side.
func (c *cutter) bufferOf(name string, key, value Format) StoreSpec {
	return StoreSpec{Name: name, Changelog: ChangelogTopic(c.app, name), Key: key, Value: value, Layout: Buffer}
}

// joinMode is what a repartition topic in front of a join takes; alone says that a record without a counterpart counts.
func (c *cutter) joinMode(alone bool) passing {
	if alone {
		return passesValues
	}
	return passesAll
}

// repartitioned leads the records of a flow through a repartition topic, and returns where they come out of it.
func (c *cutter) repartitioned(f *flow, name string, mode passing) *flow {
	here, segment := c.place, c.segment
	in := c.newSegment()
	in.follows, in.source, in.key, in.value = []*flow{f}, f.source, Serde{Format: f.key}, Serde{Format: f.value}
	f.taps = append(f.taps, tap{seg: in})
	c.segment, c.place = in, f.place
	c.repartition(name, mode)
	in.stream, c.segment.stream = f.seg.stream, f.seg.stream
	in.end = &flow{place: f.place, seg: in}
	out := c.segment
	out.end = &flow{place: c.place, seg: out}
	c.place, c.segment = here, segment
	return out.end
}
