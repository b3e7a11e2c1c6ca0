package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/topology"
)

// customFile is a configuration for a program. It takes the arguments of countFile.
var customFile = countFile[:strings.Index(countFile, "streams:")] + "# %s %s\n"

// countByHand counts in a custom processor.
func countByHand(app string) *topology.Program {
	return streams.Build(func(b *streams.Builder) {
		in := streams.From(b, app+"-in", streams.String, streams.String)
		streams.Process(in, "by-hand", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(streams.Record[string, string]) error {
			counts := streams.NewStore(c, "counts", streams.String, streams.Int)
			return func(r streams.Record[string, string]) error {
				n, _ := counts.Get(r.Key)
				counts.Put(r.Key, n+1)
				c.Forward(r.Key, n+1)
				return nil
			}
		}).To(app + "-out")
	})
}

// The stores of a custom processor move with its tasks, and outlive restarts and a crash.
func TestCustomProcessorMoves(t *testing.T) { underBoth(t, 8, testCustomProcessorMoves) }

func testCustomProcessorMoves(t *testing.T, b *bench) {
	b.file, b.program = customFile, countByHand
	ws := b.spread("a", "b")
	stop := b.load()
	if err := ws[0].Leave(context.Background(), leave.Default, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(ws[0]); !errors.Is(err, leave.ErrDrained) {
		t.Fatalf("a ended with %v, want drained", err)
	}
	stop()
	b.check()
	ws[1].Stop(config.Keep)
	if err := b.end(ws[1]); err != nil {
		t.Fatal(err)
	}
	b.awaitActive(b.start("b"), 8)
	b.send(1000, 50)
	b.check()
	for key, counts := range b.outputs() {
		for i, n := range counts {
			if n != int64(i)+1 {
				t.Errorf("%s: count %d is %d", key, i, n)
				break
			}
		}
	}
}

// tickByHand counts the calls of a timer.
func tickByHand(app string) *topology.Program {
	return streams.Build(func(b *streams.Builder) {
		in := streams.From(b, app+"-in", streams.String, streams.String)
		streams.Process(in, "ticking", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(streams.Record[string, string]) error {
			ticks := streams.NewStore(c, "ticks", streams.String, streams.Int)
			c.EveryWallClock(20*time.Millisecond, func(int64) error {
				n, _ := ticks.Get("tick")
				ticks.Put("tick", n+1)
				c.Forward("tick", n+1)
				return nil
			})
			return func(streams.Record[string, string]) error { return nil }
		}).To(app + "-out")
	})
}

// Timers by the wall clock run without input, what they do is committed, and goes on where it was after a restart.
func TestWallClockTimers(t *testing.T) { underBoth(t, 1, testWallClockTimers) }

func testWallClockTimers(t *testing.T, b *bench) {
	b.file, b.program = customFile, tickByHand
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(b.app+"-out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seen := 0
	await := func(n int) {
		for ; seen < n && ctx.Err() == nil; seen += cl.PollFetches(ctx).NumRecords() {
		}
		if seen < n {
			t.Fatalf("%d calls of the timer, want %d", seen, n)
		}
	}
	for range 2 {
		w := b.start("a")
		b.awaitActive(w, 1)
		await(seen + 5)
		w.Stop(config.Keep)
		if err := b.end(w); err != nil {
			t.Fatal(err)
		}
	}
	got := b.outputs()["tick"]
	want := make([]int64, len(got))
	for i := range want {
		want[i] = int64(i) + 1
	}
	if len(got) < 10 || !slices.Equal(got, want) {
		t.Errorf("counts %v, want them without a gap", got)
	}
}

// failing is a timer by the wall clock that cannot do its work for a while.
func failing(fails *atomic.Bool, options ...streams.SourceOption) func(app string) *topology.Program {
	return func(app string) *topology.Program {
		return streams.Build(func(b *streams.Builder) {
			in := streams.From(b, app+"-in", streams.String, streams.String, options...)
			streams.Process(in, "ticking", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(streams.Record[string, string]) error {
				ticks := streams.NewStore(c, "ticks", streams.String, streams.Int)
				c.EveryWallClock(20*time.Millisecond, func(int64) error {
					n, _ := ticks.Get("tick")
					ticks.Put("tick", n+1)
					c.Forward("tick", n+1)
					if fails.Load() {
						return errors.New("no weather today")
					}
					return nil
				})
				return func(streams.Record[string, string]) error { return nil }
			}).To(app + "-out")
		})
	}
}

// A timer by the wall clock that fails stops its task, and the status says why, or is passed over, as the source's policy says. In
// both cases nothing is left of what it did, and it goes on once it can.
func TestFailingWallClockTimer(t *testing.T) {
	for _, policy := range []string{"fail", "skip"} {
		t.Run(policy, func(t *testing.T) {
			underBoth(t, 1, func(t *testing.T, b *bench) {
				b.mayAbort = true // the task goes back to its last commit
				var fails atomic.Bool
				fails.Store(true)
				var options []streams.SourceOption
				if policy == "skip" {
					options = append(options, streams.Skip())
				}
				b.file, b.program = customFile, failing(&fails, options...)
				w := b.start("a")
				if policy == "skip" {
					b.await("calls are passed over", func() bool { return w.Totals().Skipped > 3 })
				} else {
					b.await("the status says why the task cannot go on", func() bool {
						failed := w.Status().Failed
						return len(failed) == 1 && strings.Contains(failed[0].Error, "timer of step ticking: process ticking: no weather today") && failed[0].Failures > 1
					})
				}
				if len(b.outputs()) > 0 {
					t.Errorf("what failed was written: %v", b.outputs())
				}
				fails.Store(false)
				b.await("the timer goes on", func() bool { return len(b.outputs()["tick"]) > 5 })
				for i, n := range b.outputs()["tick"] {
					if n != int64(i)+1 {
						t.Errorf("call %d has counted %d", i, n)
						break
					}
				}
				if len(w.Status().Failed) > 0 {
					t.Errorf("the status still says %+v", w.Status().Failed)
				}
			})
		})
	}
}

// Values of Go types are read and written in Avro, with the schemas of a registry.
func TestTypesInAvro(t *testing.T) {
	type event struct {
		User  string `json:"user"`
		Cents int64  `json:"cents"`
	}
	b := newBench(t, config.AtLeastOnce, 1)
	fake := srfake.New()
	defer fake.Close()
	const schema = `{"type":"record","name":"Event","fields":[{"name":"user","type":"string"},{"name":"cents","type":"long"}]}`
	fake.SeedSchema("events", 1, 1, sr.Schema{Schema: schema})
	fake.SeedSchema(b.app+"-out-value", 1, 2, sr.Schema{Schema: schema})
	b.file = strings.Replace(customFile, "threads: 2", fmt.Sprintf("threads: 2\nschema_registry: {url: %q}", fake.URL()), 1)
	b.program = func(app string) *topology.Program {
		return streams.Build(func(s *streams.Builder) {
			events := streams.From(s, app+"-in", streams.String, streams.JSON[event]().In("avro", nil))
			sums := streams.GroupBy(events, streams.String, func(r streams.Record[string, event]) (string, error) { return r.Value.User, nil }).
				Reduce("sums", func(acc event, r streams.Record[string, event]) (event, error) {
					return event{acc.User, acc.Cents + r.Value.Cents}, nil
				})
			sums.To(app + "-out")
		})
	}
	b.awaitActive(b.start("a"), 2)
	for _, cents := range []byte{2, 4, 6} { // zigzag: 1, 2, 3
		b.sendValue("k", append([]byte("\x00\x00\x00\x00\x01\x06ann"), cents), false)
	}
	var got []string
	b.await("three sums", func() bool {
		got = nil
		for _, r := range b.committed(b.app + "-out") {
			got = append(got, fmt.Sprintf("%s %q", r.Key, r.Value))
		}
		return len(got) == 3
	})
	if want := []string{`ann "\x00\x00\x00\x00\x02\x06ann\x02"`, `ann "\x00\x00\x00\x00\x02\x06ann\x06"`, `ann "\x00\x00\x00\x00\x02\x06ann\f"`}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
