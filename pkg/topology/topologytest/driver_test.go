package topologytest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

const words = `
streams:
  - name: lines
    from: {topic: lines, on_error: fail}
    steps:
      - flat_map: split(value, " ")
      - rekey: value
      - count: {store: counts, emit: EMIT}
      - to: {topic: counts, value: int}
`

func parse(t *testing.T, src string) *topology.Topology {
	t.Helper()
	f := yamlnode.Parse("test.yaml", []byte(src), nil)
	top := topology.Parse("app", f.Root().Map().Get("streams"))
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	return top
}

func start(t *testing.T, cfg topologytest.Config) *topologytest.Driver {
	t.Helper()
	d, err := topologytest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func pipe(t *testing.T, d *topologytest.Driver, records ...topologytest.Record) {
	t.Helper()
	for _, r := range records {
		if err := d.Pipe(r); err != nil {
			t.Fatal(err)
		}
	}
}

// A record is processed to its end, through the repartition topic, and its outputs name it.
func TestPipe(t *testing.T) {
	d := start(t, topologytest.Config{Topology: parse(t, strings.ReplaceAll(words, "EMIT", "update"))})
	pipe(t, d, topologytest.Record{Topic: "lines", Value: "a b a", Timestamp: 7}, topologytest.Record{Topic: "lines", Value: "b", Timestamp: 5})
	want := []topologytest.Record{
		{Topic: "counts", Key: "a", Value: 1, Timestamp: 7, Input: 0},
		{Topic: "counts", Key: "b", Value: 1, Timestamp: 7, Input: 0},
		{Topic: "counts", Key: "a", Value: 2, Timestamp: 7, Input: 0},
		{Topic: "counts", Key: "b", Value: 2, Timestamp: 7, Input: 1},
	}
	if got := d.Written("counts"); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	table := map[string]any{"a": 2, "b": 2}
	if got := d.Table("counts"); !reflect.DeepEqual(got, table) {
		t.Errorf("table: %v, want %v", got, table)
	}
	if got, err := d.Store("counts"); err != nil || !reflect.DeepEqual(got, table) {
		t.Errorf("store: %v, %v, want %v", got, err, table)
	}
	if got, want := d.Topics(), []string{"app-counts-repartition", "counts"}; !reflect.DeepEqual(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
}

// Results at commits come after each record, or when the test commits; each is the last value of its key.
func TestCommit(t *testing.T) {
	top := parse(t, strings.ReplaceAll(words, "EMIT", "commit"))
	for _, manual := range []bool{false, true} {
		d := start(t, topologytest.Config{Topology: top, ManualCommit: manual})
		pipe(t, d, topologytest.Record{Topic: "lines", Value: "a b a", Timestamp: 1}, topologytest.Record{Topic: "lines", Value: "b", Timestamp: 2})
		want := []any{2, 1, 2}
		if manual {
			if got := d.Written("counts"); len(got) > 0 {
				t.Errorf("before the commit there is %v", got)
			}
			want = []any{2, 2}
		}
		if err := d.Commit(); err != nil {
			t.Fatal(err)
		}
		var got []any
		for _, r := range d.Written("counts") {
			got = append(got, r.Value)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("manual %v: %v, want %v", manual, got, want)
		}
	}
}

// What a stream cannot process is an error of Pipe; the records behind it, and other streams, go on.
func TestBadRecord(t *testing.T) {
	d := start(t, topologytest.Config{Topology: parse(t, `
streams:
  - {name: a, from: in, steps: [flat_map: 'split(value, " ")', map: int(value), rekey: value, sum: {store: sums}, to: {topic: sums, key: int, value: int}]}
  - {name: b, from: sums, steps: [to: copy]}
`)})
	err := d.Pipe(topologytest.Record{Topic: "in", Value: "1 x 2"})
	var bad *topology.RecordError
	if !errors.As(err, &bad) || bad.Stream != "a" {
		t.Errorf("got %v, want the error of stream a", err)
	}
	pipe(t, d, topologytest.Record{Topic: "in", Value: "3"})
	if got := d.Written("copy"); len(got) != 1 || got[0].Input != 1 {
		t.Errorf("got %v, want the result of the second record alone", got)
	}
	if err := d.Pipe(topologytest.Record{Topic: "nowhere"}); err == nil || !strings.Contains(err.Error(), `no stream reads topic "nowhere"`) {
		t.Errorf("got %v, want to hear that nobody reads it", err)
	}
	if _, err := d.Store("other"); err == nil || !strings.Contains(err.Error(), `no store is called "other"`) {
		t.Errorf("got %v", err)
	}
}
