package streams_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/streams/streamstest"
)

// idle hands on a key when nothing has come for it for 100 ms of stream time, and every second how many keys wait.
func idle(b *streams.Builder) {
	in := streams.From(b, "in", streams.String, streams.String, streams.Skip())
	streams.Process(in, "idle", streams.String, streams.String, func(c *streams.Context[string, string]) func(record[string, string]) error {
		seen := streams.NewStore(c, "seen", streams.String, streams.Int)
		c.EveryStreamTime(50*time.Millisecond, func(at int64) error {
			for key, last := range seen.All() {
				if at-last >= 100 {
					c.Forward(key, "idle")
					seen.Delete(key)
				}
			}
			return nil
		})
		c.EveryWallClock(time.Second, func(int64) error {
			for key := range seen.Range("a", "c") {
				c.Forward(key, "waits")
			}
			return nil
		})
		return func(r record[string, string]) error {
			seen.Put(r.Key, r.Timestamp)
			if r.Value == "bad" {
				return errors.New("bad value")
			}
			return nil
		}
	}).To("out")
}

func outputs(t *testing.T, d interface {
	Pipe(string, string, int64) error
}, in []any) {
	t.Helper()
	for i := 0; i < len(in); i += 3 {
		if err := d.Pipe(in[i].(string), in[i+1].(string), int64(in[i+2].(int))); err != nil {
			t.Fatal(err)
		}
	}
}

// A processor keeps rows, has timers of both kinds, and what a bad record has done is taken back, stream time too.
func TestProcess(t *testing.T) {
	d := streamstest.Start(t, idle)
	outputs(t, streamstest.NewInput(d, "in", streams.String, streams.String), []any{"a", "x", 10, "b", "x", 40, "d", "bad", 999, "c", "x", 149, "a", "x", 160})
	if err := errors.Join(d.Advance(900*time.Millisecond), d.Advance(3500*time.Millisecond), d.Advance(500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got, err := streamstest.Read(d, "out", streams.String, streams.String)
	type out = streamstest.Output[string, string]
	// At 149 stream time has passed 50 and 100: one call, when a is 139 old, and b 109. Then a comes again. By the wall clock, which
	// reaches 900, 4400 and 4900 ms, the timer is due at 1000, and after the one call for four intervals at 5000.
	want := []out{{Key: "a", Value: "idle", Timestamp: 149}, {Key: "b", Value: "idle", Timestamp: 149}, {Key: "a", Value: "waits", Timestamp: 4400}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}
	rows, err := d.Store("seen")
	if wanted := map[string]any{"a": 160, "c": 149}; err != nil || !reflect.DeepEqual(rows, wanted) {
		t.Errorf("store: %v, %v, want %v", rows, err, wanted)
	}
	clock, err := d.Store("idle-clock")
	if wanted := map[string]any{"stream time": 160, "timer 0": 200}; err != nil || !reflect.DeepEqual(clock, wanted) {
		t.Errorf("clock: %v, %v, want %v", clock, err, wanted)
	}
}

// What goes wrong behind a processor, or in a store, is the record's fault, also if the processor does not look.
func TestProcessErrors(t *testing.T) {
	build := func(f func(*streams.Context[string, string], *streams.Store[string, float64], record[string, string]) error) func(*streams.Builder) {
		return func(b *streams.Builder) {
			in := streams.From(b, "in", streams.String, streams.String)
			out := streams.Process(in, "step", streams.String, streams.String, func(c *streams.Context[string, string]) func(record[string, string]) error {
				s := streams.NewStore(c, "s", streams.String, streams.Float)
				return func(r record[string, string]) error { return f(c, s, r) }
			})
			streams.MapValues(out, streams.Int, func(r record[string, string]) (int64, error) {
				if r.Value == "bad" {
					return 0, errors.New("not wanted")
				}
				return 1, nil
			}).To("out")
		}
	}
	for want, f := range map[string]func(*streams.Context[string, string], *streams.Store[string, float64], record[string, string]) error{
		"not wanted": func(c *streams.Context[string, string], s *streams.Store[string, float64], r record[string, string]) error {
			s.Put("k", 1)
			c.Forward("k", "good")
			c.Forward("k", "bad")
			return nil
		},
		"process step: panic at process_test.go:": func(_ *streams.Context[string, string], s *streams.Store[string, float64], r record[string, string]) error {
			s.Put("k", 1)
			panic("oh")
		},
		"process step: odd": func(_ *streams.Context[string, string], s *streams.Store[string, float64], r record[string, string]) error {
			s.Put("k", 1)
			return errors.New("odd")
		},
	} {
		d := streamstest.Start(t, build(f))
		err := streamstest.NewInput(d, "in", streams.String, streams.String).Pipe("k", "v", 1)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "in[0] offset 0") {
			t.Errorf("got %v, want %s", err, want)
		}
		if rows, err := d.Store("s"); err != nil || len(rows) > 0 || len(d.Written("out")) > 0 {
			t.Errorf("%s: left are %v, %v, %v", want, rows, d.Written("out"), err)
		}
	}
}
