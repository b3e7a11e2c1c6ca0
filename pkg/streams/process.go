package streams

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/topology"
)

// ProcessOption says something about a custom processor.
type ProcessOption func(*topology.Custom)

// KeepsKey promises that the processor hands on records with the key of the record that it was given, or of one before: an
// aggregate or a join behind it needs no repartition topic then.
func KeepsKey() ProcessOption { return func(c *topology.Custom) { c.KeepsKey = true } }

// Process is a step written by hand. For each task setup is called once, before the first record: it takes stores by NewStore and
// sets timers, and returns the function that is called for each record. It is called when the topology is built, too, to see
// which stores and timers there are, and must not do anything else: stores can be used when records come.
//
// What the functions keep outside of stores is gone when the task moves, and not taken back with a bad record. When the key was
// changed before and there are stores, the records go through a repartition topic, so that equal keys meet in one task; records
// without a key are dropped there.
func Process[K, V, K2, V2 any](s *Stream[K, V], name string, key Serde[K2], value Serde[V2], setup func(*Context[K2, V2]) func(Record[K, V]) error, options ...ProcessOption) *Stream[K2, V2] {
	return process(s, "", name, key, value, options, setup)
}

func process[K, V, K2, V2 any](s *Stream[K, V], kind, name string, key Serde[K2], value Serde[V2], options []ProcessOption, setup func(*Context[K2, V2]) func(Record[K, V]) error) *Stream[K2, V2] {
	c := &topology.Custom{Kind: kind, Name: name, Key: key.format, Value: value.format}
	for _, option := range options {
		option(c)
	}
	start := func(t *topology.CustomTask) (*Context[K2, V2], func(Record[K, V]) error) {
		ctx := &Context[K2, V2]{setting: setting{task: t}, key: key.asKey(), value: value}
		return ctx, setup(ctx)
	}
	look, _ := start(nil)
	c.Stores, c.StreamTimers, c.WallTimers = look.stores, look.stream.intervals, look.wall.intervals
	in := s.reader
	c.Start = func(t *topology.CustomTask) (topology.CustomRun, error) {
		ctx, each := start(t)
		switch {
		case each == nil:
			return topology.CustomRun{}, errors.New("setup has returned no function")
		case !slices.Equal(ctx.stores, c.Stores), !slices.Equal(ctx.stream.intervals, c.StreamTimers), !slices.Equal(ctx.wall.intervals, c.WallTimers):
			return topology.CustomRun{}, errors.New("setup has taken other stores or timers than when the topology was built: it must take the same each time")
		}
		return topology.CustomRun{StreamTimers: ctx.stream.calls, WallTimers: ctx.wall.calls, Process: func(call *topology.Call) error {
			r, err := in.record(call)
			if err != nil {
				return err
			}
			return each(r)
		}}, nil
	}
	return &Stream[K2, V2]{s.n.then("process", s.n.b.attach(c)), reader[K2, V2]{key, value}}
}

// Context is what a custom processor has around it in a task.
type Context[K, V any] struct {
	setting
	key   Serde[K]
	value Serde[V]
	k, v  topology.Datum // of what is handed on
}

// setting is a Context without its types.
type setting struct {
	task   *topology.CustomTask // nil while the topology is built
	stores []topology.CustomStore
	stream timers
	wall   timers
}

type timers struct {
	intervals []int64
	calls     []func(at int64) error
}

func (t *timers) add(every time.Duration, f func(at int64) error) {
	if every < time.Millisecond {
		panic(fmt.Sprintf("streams: a timer every %s: want at least 1ms", every))
	}
	t.intervals, t.calls = append(t.intervals, every.Milliseconds()), append(t.calls, f)
}

// EveryStreamTime calls f with the first record, and then when stream time, the largest timestamp that the processor has seen,
// reaches or passes multiples of an interval: once for several. It is called after the record; an error is that record's. At is
// stream time in ms since the epoch. Stream time moves with the task, and is taken back with a bad record.
func (s *setting) EveryStreamTime(interval time.Duration, f func(at int64) error) {
	s.stream.add(interval, f)
}

// EveryWallClock calls f after each interval of real time, counted from when the task has started here, with the time in ms since
// the epoch: once when several have passed. There is no record to blame for an error: under on_error: fail the task is opened
// anew and goes on from its last commit; else what the timer has done is taken back, and counted as a skipped record.
func (s *setting) EveryWallClock(interval time.Duration, f func(at int64) error) {
	s.wall.add(interval, f)
}

// Timestamp is that of the record being processed, or the time of the timer, in ms since the epoch.
func (s *setting) Timestamp() int64 { return s.running().Timestamp() }

func (s *setting) running() *topology.CustomTask {
	if s.task == nil {
		panic("streams: setup takes stores and sets timers; they can be used when records come")
	}
	return s.task
}

// Forward hands a record on, with the timestamp of the record being processed, or the time of the timer. What is wrong with it
// makes the record being processed a bad one.
func (c *Context[K, V]) Forward(key K, value V) { c.ForwardAt(key, value, c.Timestamp()) }

// ForwardAt is Forward with a timestamp, in ms since the epoch.
func (c *Context[K, V]) ForwardAt(key K, value V, timestamp int64) {
	t := c.running()
	c.k.SetNull()
	c.v.SetNull()
	if err := errors.Join(c.key.write(key, &c.k), c.value.write(value, &c.v)); err != nil {
		t.Fail(err)
		return
	}
	t.Forward(&c.k, &c.v, timestamp)
}
