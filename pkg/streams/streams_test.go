package streams_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/streams/streamstest"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

type order struct {
	User   string  `json:"user"`
	Amount float64 `json:"amount"`
	Item   string  `json:"item,omitempty"`
}

type record[K, V any] = streams.Record[K, V]

// pairs are topologies in Go and in YAML that compute the same.
var pairs = map[string]struct {
	build func(*streams.Builder)
	yaml  string
	nulls bool // values may be
}{
	"words": {
		func(b *streams.Builder) {
			lines := streams.From(b, "lines", streams.String, streams.String)
			words := streams.FlatMapValues(lines, streams.String, func(r record[string, string]) ([]string, error) {
				return strings.Split(strings.ToLower(r.Value), " "), nil
			}).Filter(func(r record[string, string]) bool { return r.Value != "" })
			streams.GroupBy(words, streams.String, func(r record[string, string]) (string, error) { return r.Value, nil }).Count("counts").To("out")
		}, `
streams:
  - name: lines
    from: lines
    steps: [flat_map: 'split(lower(value), " ")', filter: value != "", rekey: value, count: {store: counts}, to: {topic: out, value: int}]`, false,
	},
	"reduce": {
		func(b *streams.Builder) {
			streams.From(b, "lines", streams.String, streams.String).GroupByKey().
				Reduce("last", func(acc string, r record[string, string]) (string, error) {
					return acc[max(0, len(acc)-10):] + "," + r.Value, nil
				}).To("out")
		}, `
streams:
  - name: lines
    from: lines
    steps: [reduce: {store: last, expr: 'acc[max(0, len(acc)-10):] + "," + value'}, to: out]`, true,
	},
	"orders": {
		func(b *streams.Builder) {
			orders := streams.From(b, "orders", streams.String, streams.JSON[order]())
			byUser := streams.GroupBy(orders.Filter(func(r record[string, order]) bool { return r.Value.Amount > 2 }), streams.String,
				func(r record[string, order]) (string, error) { return r.Value.User, nil })
			streams.Aggregate(byUser, "spent", streams.Float, streams.Aggregator[string, order, float64]{
				Initial: func() float64 { return 0 },
				Add:     func(sum float64, r record[string, order]) (float64, error) { return sum + r.Value.Amount, nil },
			}).To("out")
		}, `
streams:
  - name: orders
    from: {topic: orders, value: json}
    steps: [filter: value.amount > 2, rekey: string(value.user), aggregate: {store: spent, initial: '0.0', add: acc + float(value.amount)}, to: {topic: out, value: float}]`, true,
	},
	"windows": {
		func(b *streams.Builder) {
			streams.From(b, "lines", streams.String, streams.String).GroupByKey().WindowedBy(streams.Hopping(200*time.Millisecond, 100*time.Millisecond).Grace(50 * time.Millisecond)).
				Count("counts").To("out")
		}, `
streams:
  - name: lines
    from: lines
    steps: [count: {store: counts, window: {hopping: 200ms, every: 100ms, grace: 50ms}}, to: {topic: out, value: int}]`, true,
	},
	"sessions on close": {
		func(b *streams.Builder) {
			g := streams.From(b, "lines", streams.String, streams.String).GroupByKey().WindowedBy(streams.Session(30 * time.Millisecond))
			t := streams.Aggregate(g, "long", streams.Int, streams.Aggregator[string, string, int64]{
				Initial: func() int64 { return 0 },
				Add:     func(n int64, r record[string, string]) (int64, error) { return n + int64(len(r.Value)), nil },
				Merge:   func(a, b int64) (int64, error) { return a + b, nil },
			}, streams.OnClose)
			streams.Map(t.ToStream(), streams.String, streams.Int, func(r record[string, int64]) (string, int64, error) {
				return fmt.Sprintf("%s %d-%d", r.Key, r.Window.Start, r.Window.End), r.Value, nil
			}).To("out")
		}, `
streams:
  - name: lines
    from: lines
    steps:
      - aggregate: {store: long, initial: '0', add: acc + len(value), merge: acc + other, window: {session: 30ms}, emit: close}
      - map: {key: 'key + " " + string(window_start) + "-" + string(window_end)', value: value}
      - to: {topic: out, value: int}`, false,
	},
	"table join": {
		func(b *streams.Builder) {
			lines := streams.From(b, "lines", streams.String, streams.String)
			counts := lines.GroupByKey().Count("counts")
			orders := streams.Rekey(streams.From(b, "orders", streams.String, streams.JSON[order]()), streams.String, func(r record[string, order]) (string, error) {
				return r.Value.User, nil
			})
			streams.JoinTable(orders, counts, streams.Left, streams.String, func(r record[string, order], n int64) (string, error) {
				return fmt.Sprintf("%v:%d", r.Value.Amount, n), nil
			}).To("out")
		}, `
streams:
  - {name: lines, from: lines, steps: []}
  - name: orders
    from: {topic: orders, value: json}
    steps: [rekey: string(value.user), join: {table: counts, type: left, value: 'string(float(value.amount)) + ":" + string(other == nil ? 0 : other)'}, to: out]
tables:
  - {name: counts, from: {stream: lines}, steps: [count: {store: counts}]}`, true,
	},
	"stream join": {
		func(b *streams.Builder) {
			lines := streams.From(b, "lines", streams.String, streams.String)
			orders := streams.Rekey(streams.From(b, "orders", streams.String, streams.JSON[order]()), streams.String, func(r record[string, order]) (string, error) {
				return r.Value.User, nil
			})
			streams.JoinStreams(lines, orders, "near", streams.Within{Before: 20 * time.Millisecond, After: 40 * time.Millisecond, Grace: 10 * time.Millisecond}, streams.Outer, streams.String,
				func(r record[string, string], o order) (string, error) { return r.Value + "+" + o.Item, nil }).To("out")
		}, `
streams:
  - name: lines
    from: lines
    steps:
      - join: {stream: orders, store: near, before: 20ms, after: 40ms, grace: 10ms, type: outer, value: '(value == nil ? "" : value) + "+" + (other == nil ? "" : other.item)'}
      - to: out
  - {name: orders, from: {topic: orders, value: json}, steps: [rekey: string(value.user)]}`, true,
	},
	"branches": {
		func(b *streams.Builder) {
			ways := streams.From(b, "lines", streams.String, streams.String).Branch(
				streams.Case[string, string]{Name: "long", When: func(r record[string, string]) bool { return len(r.Value) > 6 }},
				streams.Case[string, string]{Name: "rest"})
			long := streams.MapValues(ways[0], streams.String, func(r record[string, string]) (string, error) { return "long " + r.Value, nil })
			streams.Merge(ways[1], long).GroupByKey().Count("counts").ToStream().To("out")
		}, `
streams:
  - {name: lines, from: lines, steps: [branch: [{name: long, when: len(value) > 6}, {name: rest}]]}
  - {name: rest, from: {stream: lines, branch: rest}, steps: []}
  - {name: long, from: {stream: lines, branch: long}, steps: [map: '"long " + value']}
  - {name: all, from: {streams: [rest, long]}, steps: [count: {store: counts}, to: {topic: out, value: int}]}`, false,
	},
	"foreign key": {
		func(b *streams.Builder) {
			orders := streams.TableFrom(b, "orders", streams.String, streams.JSON[*order]())
			lines := streams.TableFrom(b, "lines", streams.String, streams.Optional(streams.String))
			streams.JoinTablesBy(orders, lines, streams.Left, func(r record[string, *order]) (string, error) { return r.Value.User, nil }, streams.String,
				func(r record[string, *order], line *string) (string, error) {
					if line == nil {
						return r.Value.Item, nil
					}
					return r.Value.Item + *line, nil
				}).To("out")
		}, `
streams: []
tables:
  - {name: orders, from: {topic: orders, value: json}, steps: [join: {table: lines, type: left, on: string(value.user), value: 'string(value.item) + (other == nil ? "" : other)'}, to: out]}
  - {name: lines, from: lines}`, true,
	},
	"global": {
		func(b *streams.Builder) {
			lines := streams.GlobalFrom(b, "lines", streams.String, streams.String)
			orders := streams.From(b, "orders", streams.String, streams.JSON[order]())
			streams.JoinGlobal(orders, lines, streams.Inner, func(r record[string, order]) (string, error) { return r.Value.User, nil }, streams.String,
				func(r record[string, order], line string) (string, error) { return r.Value.Item + line, nil }).To("out")
		}, `
streams:
  - {name: orders, from: {topic: orders, value: json}, steps: [join: {table: lines, key: string(value.user), value: string(value.item) + other}, to: out]}
tables:
  - {name: lines, from: lines, global: true}`, false,
	},
	"groups of a table": {
		func(b *streams.Builder) {
			orders := streams.TableFrom(b, "orders", streams.String, streams.JSON[*order]())
			groups := streams.GroupTable(orders, streams.String, func(r record[string, *order]) (string, error) { return r.Value.Item, nil })
			add := func(sign float64) func(float64, record[string, *order]) (float64, error) {
				return func(sum float64, r record[string, *order]) (float64, error) { return sum + sign*r.Value.Amount, nil }
			}
			streams.AggregateTable(groups, "sums", streams.Float, streams.TableAggregator[string, *order, float64]{Initial: func() float64 { return 0 }, Add: add(1), Subtract: add(-1)}).To("out")
		}, `
streams: []
tables:
  - name: orders
    from: {topic: orders, value: json}
    steps: [rekey: string(value.item), aggregate: {store: sums, initial: '0.0', add: acc + float(value.amount), subtract: acc - float(value.amount)}, to: {topic: out, value: float}]`, true,
	},
	"dedupe": {
		func(b *streams.Builder) {
			orders := streams.From(b, "orders", streams.String, streams.JSON[order]())
			once := orders.Dedupe("keys", 100*time.Millisecond)
			streams.DedupeBy(once, "items", time.Second, streams.String, func(r record[string, order]) (string, error) { return r.Value.Item, nil }).To("out")
		}, `
streams:
  - name: orders
    from: {topic: orders, value: json}
    steps: [dedupe: {within: 100ms, store: keys}, dedupe: {within: 1s, by: value.item, store: items}, to: {topic: out, value: json}]`, false,
	},
	"expiring": {
		func(b *streams.Builder) {
			lines := streams.TableFrom(b, "lines", streams.String, streams.Optional(streams.String), streams.TTL(50*time.Millisecond))
			lines.To("out")
			streams.From(b, "orders", streams.String, streams.JSON[order]()).GroupByKey().TTL(80 * time.Millisecond).Count("counts").To("out")
		}, `
streams:
  - {name: orders, from: {topic: orders, value: json}, steps: [count: {store: counts, ttl: 80ms}, to: {topic: out, value: int}]}
tables:
  - {name: lines, from: lines, ttl: 50ms, steps: [to: out]}`, true,
	},
	"top": {
		func(b *streams.Builder) {
			orders := streams.From(b, "orders", streams.String, streams.JSON[order]()).GroupByKey()
			by := func(r record[string, order]) (float64, error) { return r.Value.Amount, nil }
			item := func(r record[string, order]) (string, error) { return r.Value.Item, nil }
			streams.TopN(orders, "best", streams.Ranking[string, order]{N: 3, By: by}).To("out")
			streams.TopN(orders.WindowedBy(streams.Tumbling(time.Second)), "best-items", streams.Ranking[string, order]{N: 2, By: by, ID: item}).To("out")
		}, `
streams:
  - {name: orders, from: {topic: orders, value: json}, steps: []}
  - {name: best, from: {stream: orders}, steps: [top_n: {store: best, n: 3, by: value.amount}, to: {topic: out, value: json}]}
  - {name: items, from: {stream: orders}, steps: [top_n: {store: best-items, n: 2, by: value.amount, id: value.item, window: {tumbling: 1s}}, to: {topic: out, value: json}]}`, false,
	},
	"computed": {
		func(b *streams.Builder) {
			orders := streams.From(b, "orders", streams.String, streams.JSON[order]())
			orders.ToOneOf([]string{"out", "other"}, func(r record[string, order]) (string, error) {
				if r.Value.Amount > 4 {
					return "out", nil
				}
				return "other", nil
			}, streams.Header[string, order]{Name: "item", Value: func(r record[string, order]) ([]byte, error) { return []byte(r.Value.Item), nil }},
				streams.Header[string, order]{Name: "none", Value: func(record[string, order]) ([]byte, error) { return nil, nil }})
		}, `
streams:
  - name: orders
    from: {topic: orders, value: json}
    steps: [to: {topic_expr: 'value.amount > 4 ? "out" : "other"', topics: [out, other], value: json, headers: {item: value.item, none: nil}}]`, false,
	},
	"tables": {
		func(b *streams.Builder) {
			lines := streams.TableFrom(b, "lines", streams.String, streams.Optional(streams.String))
			long := lines.Filter(func(r record[string, *string]) bool { return len(*r.Value) > 4 })
			lengths := streams.MapTable(long, streams.Int, func(r record[string, *string]) (int64, error) { return int64(len(*r.Value)), nil })
			streams.JoinTables(lengths, lines, streams.Inner, streams.String, func(r record[string, int64], text *string) (string, error) {
				return strconv.FormatInt(r.Value, 10) + *text, nil
			}).To("out")
		}, `
streams: []
tables:
  - {name: lines, from: lines}
  - {name: long, from: {table: lines}, steps: [filter: len(value) > 4, map: len(value), join: {table: lines, value: string(value) + other}, to: out]}`, true,
	},
}

// TestSameAsYAML pipes the same random records through a topology in Go and its counterpart in YAML.
func TestSameAsYAML(t *testing.T) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				d := streamstest.Start(t, pair.build)
				e := startYAML(t, pair.yaml)
				for i, r := range randomRecords(seed) {
					if !strings.Contains(pair.yaml, r.Topic) || r.Value == nil && !pair.nulls {
						continue
					}
					errGo, errYAML := d.Pipe(r), e.Pipe(r)
					if (errGo == nil) != (errYAML == nil) {
						t.Fatalf("seed %d, record %d %v: %v, YAML: %v", seed, i, r, errGo, errYAML)
					}
				}
				got, want := d.Written("out"), e.Written("out")
				if len(want) == 0 {
					t.Errorf("seed %d: nothing was written", seed)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d: got\n%v\nwant\n%v", seed, got, want)
				}
			}
		})
	}
}

func startYAML(t testing.TB, src string) *topologytest.Driver {
	t.Helper()
	f := yamlnode.Parse("test.yaml", []byte(src), nil)
	m := f.Root().Map()
	top := topology.Definition{App: "app", Streams: m.Get("streams"), Tables: m.Get("tables")}.Parse()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	d, err := topologytest.New(topologytest.Config{Topology: top})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func randomRecords(seed uint64) []topologytest.Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	words := []string{"a", "be", "C", "Long", "longer", "longest"}
	out := make([]topologytest.Record, 200)
	for i := range out {
		r := topologytest.Record{Topic: "lines", Key: words[rng.IntN(3)], Timestamp: int64(i*10 + rng.IntN(100))}
		switch {
		case rng.IntN(10) == 0:
			r.Value = nil
		case rng.IntN(2) == 0:
			r.Topic = "orders"
			r.Value = map[string]any{"user": words[rng.IntN(3)], "amount": float64(rng.IntN(9)) + 0.5, "item": words[rng.IntN(6)]}
		default:
			r.Value = words[rng.IntN(6)] + " " + words[rng.IntN(6)]
		}
		if rng.IntN(20) == 0 {
			r.Key = nil
		}
		out[i] = r
	}
	return out
}

// Keys have the bytes that YAML gives, whatever the order of a type's fields.
func TestKeyBytes(t *testing.T) {
	type key struct {
		Z string  `json:"z"`
		A int     `json:"a"`
		M float64 `json:"m"`
	}
	got, err := streams.JSON[key]().EncodeKey(key{"<&>", 7, 1e21})
	want, errYAML := topology.JSON.Encode(map[string]any{"z": "<&>", "a": 7, "m": 1e21})
	if err != nil || errYAML != nil || string(got) != string(want) {
		t.Errorf("got %s, %v, want %s, %v", got, err, want, errYAML)
	}
	if value, err := streams.JSON[key]().Encode(key{Z: "<"}); err != nil || !json.Valid(value) || !strings.Contains(string(value), `"<"`) {
		t.Errorf("value: %s, %v", value, err)
	}
}

// An error and a panic of a function make a bad record, with its place and that of the panic in the message.
func TestBadRecords(t *testing.T) {
	build := func(f func(record[string, string]) (string, error), options ...streams.SourceOption) func(*streams.Builder) {
		return func(b *streams.Builder) {
			in := streams.From(b, "in", streams.String, streams.String, options...)
			streams.MapValues(in, streams.String, f, streams.Named("shout")).To("out")
		}
	}
	fails := func(r record[string, string]) (string, error) {
		switch r.Value {
		case "error":
			return "", errors.New("no such luck")
		case "panic":
			return strings.Fields(r.Value)[1], nil
		}
		return r.Value, nil
	}
	d := streamstest.Start(t, build(fails))
	in := streamstest.NewInput(d, "in", streams.String, streams.String)
	for value, want := range map[string]string{
		"error": "stream in: record at in[0] offset 0: function shout: no such luck",
		"panic": "function shout: panic at streams_test.go:",
	} {
		err := in.Pipe("k", value, 1)
		var bad *topology.RecordError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), strings.Replace(want, "offset 0", fmt.Sprintf("offset %d", bad.Offset), 1)) {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
	if err := in.Pipe("k", "fine", 2); err != nil || len(d.Written("out")) != 1 {
		t.Errorf("after the bad ones: %v, %v", err, d.Written("out"))
	}
	d = streamstest.Start(t, build(fails, streams.DeadLetter("dead")))
	in = streamstest.NewInput(d, "in", streams.String, streams.String)
	if err := errors.Join(in.Pipe("k", "panic", 1), in.Pipe("k", "fine", 2)); err != nil || len(d.Written("dead")) != 1 || len(d.Written("out")) != 1 {
		t.Errorf("dead letters: %v, %v, %v", err, d.Written("dead"), d.Written("out"))
	}
}

// Mistakes name the place in the Go source.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*streams.Builder)
		want  string
	}{
		{"nothing", func(*streams.Builder) {}, "no streams"},
		{"idle", func(b *streams.Builder) { streams.From(b, "in", streams.String, streams.String) }, "streams_test.go:"},
		{"same store", func(b *streams.Builder) {
			g := streams.From(b, "in", streams.String, streams.String).GroupByKey()
			g.Count("n")
			g.Count("n")
		}, `a second store is called "n"`},
		{"topic", func(b *streams.Builder) { streams.From(b, "in", streams.String, streams.String).To("no/topic") }, `"no/topic" cannot be a topic's name`},
	} {
		b := streams.New()
		c.build(b)
		if _, err := b.Topology("app"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
