package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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
