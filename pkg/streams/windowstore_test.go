package streams_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/streams/streamstest"
)

const visitGap = 30

// visits makes sessions by hand: it joins those that a record is near to, and hands each on when it is over.
func visits(b *streams.Builder) {
	in := streams.From(b, "in", streams.String, streams.String, streams.Skip())
	streams.Process(in, "visits", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(record[string, string]) error {
		open := streams.NewWindowStore(c, "open", streams.String, streams.Int, time.Second)
		c.EveryStreamTime(time.Millisecond, func(at int64) error {
			for w, n := range open.Ended(at - visitGap - 1) {
				c.ForwardAt(w.Key, n, w.Window.End)
				open.Delete(w.Key, w.Window)
			}
			return nil
		})
		return func(r record[string, string]) error {
			all, count := streams.Bounds{Start: r.Timestamp, End: r.Timestamp}, int64(1)
			for w, n := range open.Of(r.Key, r.Timestamp-visitGap, r.Timestamp+visitGap) {
				all, count = streams.Bounds{Start: min(all.Start, w.Start), End: max(all.End, w.End)}, count+n
				open.Delete(r.Key, w)
			}
			open.Put(r.Key, all, count)
			if r.Value == "bad" {
				return errors.New("bad value")
			}
			return nil
		}
	}).To("out")
}

// Windows are found by key and time, and by their end; a bad record leaves none.
func TestWindowStore(t *testing.T) {
	d := streamstest.Start(t, visits)
	in := streamstest.NewInput(d, "in", streams.String, streams.String)
	outputs(t, in, []any{"a", "x", 10, "a", "x", 70, "b", "x", 60, "a", "bad", 40, "a", "x", 40, "b", "x", 200, "b", "bad", 260, "a", "x", 220})
	got, err := streamstest.Read(d, "out", streams.String, streams.Int)
	type out = streamstest.Output[string, int64]
	if want := []out{{Key: "a", Value: 1, Timestamp: 10}, {Key: "b", Value: 1, Timestamp: 60}, {Key: "a", Value: 2, Timestamp: 70}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	rows, err := d.Store("open")
	if want := map[string]any{"b@200/200": 1, "a@220/220": 1}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("store: %v, %v, want %v", rows, err, want)
	}
}

// Windows go when stream time is beyond their end by more than the retention, without a timer too.
func TestWindowStoreRetention(t *testing.T) {
	d := streamstest.Start(t, func(b *streams.Builder) {
		in := streams.From(b, "in", streams.String, streams.String)
		streams.Process(in, "per-ten", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(record[string, string]) error {
			counts := streams.NewWindowStore(c, "counts", streams.String, streams.Int, 20*time.Millisecond)
			return func(r record[string, string]) error {
				w := streams.Bounds{Start: r.Timestamp / 10 * 10, End: r.Timestamp/10*10 + 10}
				n, _ := counts.Get(r.Key, w)
				counts.Put(r.Key, w, n+1)
				c.Forward(r.Key, n+1)
				return nil
			}
		}).To("out")
	})
	in := streamstest.NewInput(d, "in", streams.String, streams.String)
	outputs(t, in, []any{"a", "x", 1, "a", "x", 9, "b", "x", 12, "a", "x", 30})
	for _, c := range []struct {
		at   int
		want map[string]any
	}{
		{30, map[string]any{"a@0/10": 2, "b@10/20": 1, "a@30/40": 2}},
		{31, map[string]any{"b@10/20": 1, "a@30/40": 3}},
		{90, map[string]any{"a@90/100": 1}},
	} {
		outputs(t, in, []any{"a", "x", c.at})
		if rows, err := d.Store("counts"); err != nil || !reflect.DeepEqual(rows, c.want) {
			t.Errorf("at %d: %v, %v, want %v", c.at, rows, err, c.want)
		}
	}
}
