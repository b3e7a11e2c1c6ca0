package topology

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Custom is a step written in Go. It gets every record, keeps what it likes in its stores, and hands on what it likes.
type Custom struct {
	Kind     string // of step, for descriptions; "": process
	Name     string
	Stores   []CustomStore
	Key      Format // of what it hands on
	Value    Format
	KeepsKey bool // what it hands on has the key of the record: no repartition topic is needed behind
	// StreamTimers and WallTimers are the intervals of its timers, in ms.
	StreamTimers, WallTimers []int64
	// Start makes the one of a task.
	Start func(*CustomTask) (CustomRun, error)
}

// CustomStore is a store of a custom step.
type CustomStore struct {
	Name       string
	Key, Value Format
	Windowed   bool  // keys have windows, see CustomWindows
	Retention  int64 // of windows: for how long behind its end one is kept, by the step's stream time, in ms
}

// CustomRun is a custom step in a task. An error of one of its functions is the record's; that of a timer by stream time is the
// record's that moved it.
type CustomRun struct {
	Process func(*Call) error
	// StreamTimers and WallTimers are called when it is time, with that in ms since the epoch; they are as many as Custom has
	// intervals.
	StreamTimers, WallTimers []func(at int64) error
}

type customStep struct {
	*Custom
	stores []StoreSpec
	clock  *StoreSpec // of stream time; nil: nothing goes by it
}

func (s *customStep) String() string {
	var about []string
	for _, one := range s.stores {
		text := fmt.Sprintf("store %s: key %s, value %s", one.Name, one.Key, one.Value)
		if one.Window != nil {
			text += ", windows kept " + (time.Duration(one.Window.Retain) * time.Millisecond).String()
		}
		about = append(about, text)
	}
	timers := func(what string, all []int64) {
		for _, n := range all {
			about = append(about, "every "+(time.Duration(n)*time.Millisecond).String()+" of "+what)
		}
	}
	timers("stream time", s.StreamTimers)
	timers("the wall clock", s.WallTimers)
	text := strings.TrimSpace(cmp.Or(s.Kind, "process") + " " + s.Name)
	if len(about) > 0 {
		text += " (" + strings.Join(about, "; ") + ")"
	}
	return text
}

func (s *customStep) keeps() []StoreSpec {
	if s.clock == nil {
		return s.stores
	}
	return append(s.stores[:len(s.stores):len(s.stores)], *s.clock)
}

// custom adds a step written in Go, behind a repartition topic if it has stores and the key changed before.
func (c *cutter) custom(of *Custom, at yamlnode.Node) {
	switch {
	case c.table:
		at.Errorf("read it as a stream", "a table has no step process")
		return
	case c.mustNotFail():
		c.refuse("process", at)
		return
	}
	s := &customStep{Custom: of}
	if c.keyChanged && len(of.Stores) > 0 {
		c.repartition(of.Name, passesNulls)
	}
	add := func(spec StoreSpec) StoreSpec {
		spec.Changelog, spec.scanned = ChangelogTopic(c.app, spec.Name), true
		c.ok = c.checkName(spec, RepartitionTopic(c.app, of.Name), at, at) && c.ok
		c.segment.stores = append(c.segment.stores, spec)
		return spec
	}
	timed := len(of.StreamTimers) > 0
	for _, store := range of.Stores {
		spec := StoreSpec{Name: store.Name, Key: store.Key, Value: store.Value}
		if store.Windowed {
			spec.Window, timed = &window.Spec{Kind: window.Custom, Retain: store.Retention}, true
		}
		s.stores = append(s.stores, add(spec))
	}
	if timed {
		clock := add(StoreSpec{Name: of.Name + "-clock", Key: String, Value: Int})
		s.clock = &clock
	}
	c.add(s)
	c.key, c.value, c.sourceKey, c.sourceValue = of.Key, of.Value, false, false
	c.keyChanged = c.keyChanged || !of.KeepsKey
	c.window, c.bounds, c.nullable, c.rows = nil, false, true, nil
}

func (s *customStep) start(c *chain, next operator) operator {
	o := &customOperator{customStep: s, c: c, next: next}
	for i := range s.stores {
		if spec := &s.stores[i]; spec.Window != nil {
			o.windows = append(o.windows, &CustomWindows{windowRows: newWindowRows(c, spec), o: o})
		}
	}
	if s.clock != nil {
		o.time = &streamClock{rows: c.rows(s.clock), intervals: s.StreamTimers}
	}
	o.wall = make([]int64, len(s.WallTimers))
	var err error
	if o.run, err = o.started(); err != nil {
		c.assembly.failed(fmt.Errorf("stream %s: starting step %s: %w", c.seg.stream, s.Name, err))
		return o
	}
	if len(s.WallTimers) > 0 {
		c.p.ticking = append(c.p.ticking, o)
	}
	return o
}

// customOperator is a custom step in a task.
type customOperator struct {
	*customStep
	c       *chain
	run     CustomRun
	time    *streamClock
	windows []*CustomWindows
	wall    []int64 // when timers by the wall clock are due next, ms since the epoch; 0: not known yet
	next    operator

	call   Call
	ts     int64       // of what is handed on, unless it says itself
	source *kgo.Record // likewise
	tick   kgo.Record  // is blamed for what a timer does
	out    message
	err    error // what failed while the user's function runs: a store, or what follows
}

func (o *customOperator) process(m *message) error {
	o.call, o.ts, o.source = Call{m: m}, m.ts, m.source
	if err := o.user(o.processed, 0); err != nil {
		return err
	}
	if o.time == nil || m.ts < 0 {
		return nil
	}
	err := o.time.advance(m.ts, func(timer int, at int64) error {
		o.tick = kgo.Record{Topic: m.source.Topic, Partition: m.source.Partition, Offset: m.source.Offset}
		o.ts, o.source = at, &o.tick
		return o.user(o.run.StreamTimers[timer], at)
	})
	for _, w := range o.windows {
		if err == nil {
			err = w.expire(w.win.Expiry(o.time.time))
		}
	}
	return err
}

func (o *customOperator) processed(int64) error { return o.run.Process(&o.call) }

func (o *customOperator) started() (run CustomRun, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	return o.Start(&CustomTask{o})
}

// user runs a function of the user's.
func (o *customOperator) user(f func(int64) error, at int64) (err error) {
	o.err = nil
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
		switch {
		case o.err != nil:
			err = o.err // what came after it may come of it
		case err != nil:
			err = fault{o.blame(err)}
		}
	}()
	return f(at)
}

// blame names the step in an error.
func (o *customOperator) blame(err error) error {
	return fmt.Errorf("%s: %w", strings.TrimSpace(cmp.Or(o.Kind, "process")+" "+o.Name), err)
}

// CustomTask is what a custom step has around it in a task.
type CustomTask struct{ o *customOperator }

// Store is the store of that name, nil if the step has none.
func (t *CustomTask) Store(name string) *CustomRows {
	for i := range t.o.stores {
		if spec := &t.o.stores[i]; spec.Name == name {
			return &CustomRows{rows: t.o.c.rows(spec), o: t.o}
		}
	}
	return nil
}

// Windows is the store of that name, whose keys have windows; nil if the step has none.
func (t *CustomTask) Windows(name string) *CustomWindows {
	for _, w := range t.o.windows {
		if w.spec.Name == name {
			return w
		}
	}
	return nil
}

// Timestamp is that of the record being processed, or the time of the timer.
func (t *CustomTask) Timestamp() int64 { return t.o.ts }

// Forward hands a record on. What goes wrong with it makes the record being processed a bad one, whatever the step does.
func (t *CustomTask) Forward(key, value *Datum, ts int64) {
	o := t.o
	if o.err != nil {
		return
	}
	o.out = message{key: datum(*key), value: datum(*value), ts: ts, source: o.source}
	o.err = o.next.process(&o.out)
}

// Fail makes the record being processed a bad one.
func (t *CustomTask) Fail(err error) {
	if t.o.err == nil {
		t.o.err = fault{t.o.blame(err)}
	}
}
