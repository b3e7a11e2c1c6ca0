package topology

import (
	"fmt"
	"strings"
	"testing"
)

// storeOf is the definition of the only store that steps of a stream make, or of the first one.
func storeOf(t *testing.T, steps string) string {
	t.Helper()
	top := parse(t, "app: a\nstreams:\n  - name: s\n    from: {topic: in, key: string, value: string}\n    steps:\n"+
		"      - "+strings.ReplaceAll(steps, "\n", "\n      - ")+"\n      - to: {topic: out, value: json}\n  - name: other\n    from: other-in\n    steps: [to: other-out]\n")
	for _, s := range top.Subtopologies {
		if len(s.Stores) > 0 {
			return s.Stores[0].Definition()
		}
	}
	t.Fatalf("no store in\n%s", steps)
	return ""
}

// Definitions are on disk and in topics: they stay as they are for good.
func TestDefinitionsAreKept(t *testing.T) {
	for steps, want := range map[string]string{
		"count: {store: c}":                                "count; key string; value int; rows v1",
		"sum: {store: c, value: float(value)}":             "sum; key string; value float; rows v1",
		"collect: {store: c, value: int(value)}":           "collect of int; key string; value json; rows v1",
		"count_distinct: {store: c}":                       "count_distinct of string; key string; value json; rows v1",
		"count: {store: c, window: {tumbling: 1m}}":        "count; key string; value int; window tumbling 1m0s; rows v1",
		"count: {window: {hopping: 1h, every: 10s}}":       "count; key string; value int; window hopping 1h0m0s every 10s; rows v1",
		"count: {window: {session: 90s, grace: 5s}}":       "count; key string; value int; window session 1m30s; rows v1",
		"dedupe: {within: 10s, store: c}":                  "times; key string; value bytes; rows v1",
		"reduce: {store: c, expr: acc + value}":            "reduce; key string; value string; rows v1",
		"join: {stream: other, within: 10s, value: value}": "inner join of streams, 10s before and 10s after; key string; value string; rows v1",
		"join: {stream: other, type: left, before: 1s, after: 2m, value: value}": "left join of streams, 1s before and 2m0s after; " +
			"key string; value string; rows v1",
	} {
		if got := storeOf(t, steps); got != want {
			t.Errorf("%s\nhas   %s\nwants %s", steps, got, want)
		}
	}
	top := parse(t, "app: a\nstreams:\n  - {name: s, from: in, steps: [to: out]}\ntables:\n  - {name: c, from: {topic: t, value: json}}\n")
	if got, want := top.Subtopologies[1].Stores[0].Definition(), "rows; key string; value json; rows v1"; got != want {
		t.Errorf("a table has %s, wants %s", got, want)
	}
}

func TestRedefined(t *testing.T) {
	for _, c := range []struct{ was, now, want string }{
		{"count: {store: c, window: {tumbling: 1m}}", "count: {store: c, window: {tumbling: 5m}}", "window: tumbling 1m0s → tumbling 5m0s"},
		{"count: {store: c, window: {tumbling: 1m}}", "count: {store: c, window: {session: 1m}}", "window: tumbling 1m0s → session 1m0s"},
		{"count: {store: c, window: {hopping: 5m, every: 1m}}", "count: {store: c, window: {hopping: 5m, every: 30s}}",
			"window: hopping 5m0s every 1m0s → hopping 5m0s every 30s"},
		{"count: {store: c}", "count: {store: c, window: {sliding: 1m}}", "window: none → sliding 1m0s"},
		{"count: {store: c, window: {sliding: 1m}}", "count: {store: c}", "window: sliding 1m0s → none"},
		{"count: {store: c}", "sum: {store: c, value: len(value)}", "kind: count → sum"},
		{"sum: {store: c, value: len(value)}", "sum: {store: c, value: float(value)}", "value: int → float"},
		{"count: {store: c}", "rekey: len(value)\ncount: {store: c}\nrekey: string(key)", "key: string → int"},
		{"min: {store: c, value: value}", "max: {store: c, value: len(value)}", "kind: min → max, value: string → int"},
		{"collect: {store: c}", "collect: {store: c, value: len(value)}", "kind: collect of string → collect of int"},
		{"join: {stream: other, within: 10s, value: value}", "join: {stream: other, within: 20s, value: value}",
			"kind: inner join of streams, 10s before and 10s after → inner join of streams, 20s before and 20s after"},
		{"join: {stream: other, within: 10s, value: value}", "join: {stream: other, within: 10s, type: outer, value: value}",
			"kind: inner join of streams, 10s before and 10s after → outer join of streams, 10s before and 10s after"},
		// What leaves the rows as they are.
		{"count: {store: c, window: {tumbling: 1m}}", "count: {store: d, window: {tumbling: 1m, grace: 5s, retention: 1h, late: l}, emit: close}", ""},
		{"count: {store: c}", "filter: value != \"\"\nmap: upper(value)\ncount: {store: c, emit: commit}\nfilter: value > 3", ""},
		{"count: {store: c}", "rekey: value\ncount: {store: c}", ""},
		{"reduce: {store: c, expr: acc + value}", "reduce: {store: c, expr: value}", ""},
		{"sum: {store: c, value: len(value)}", "sum: {store: c, value: 2 * len(value)}", ""},
		{"join: {stream: other, within: 10s, value: value}", "join: {stream: other, within: 10s, grace: 1s, value: other}", ""},
	} {
		if got := Redefined(storeOf(t, c.was), storeOf(t, c.now)); got != c.want {
			t.Errorf("from %s\nto   %s\ngot  %q\nwant %q", c.was, c.now, got, c.want)
		}
		if back := Redefined(storeOf(t, c.now), storeOf(t, c.was)); (back == "") != (c.want == "") {
			t.Errorf("back from %s: %q", c.now, back)
		}
	}
	if got := Redefined("count; key string; rows v1", "count; key string; rows v2"); got != "rows: v1 → v2" {
		t.Errorf("another encoding: %q", got)
	}
}

// What changes a definition changes the hash too, which members of a group compare.
func TestHashCoversDefinitions(t *testing.T) {
	hash := func(step string) uint64 {
		return parse(t, fmt.Sprintf("app: a\nstreams:\n  - {name: o, from: other, steps: [to: oo]}\n  - name: s\n    from: in\n    steps:\n      - %s\n      - to: {topic: out, value: json}\n", step)).Hash()
	}
	seen := map[uint64]string{}
	for _, step := range []string{
		"count: {store: c}", "first: {store: c}", "last: {store: c}", "count: {store: d}", "count: {store: c, window: {tumbling: 1m}}",
		"count: {store: c, window: {tumbling: 2m}}", "count: {store: c, window: {session: 1m}}", "sum: {store: c, value: len(value)}",
		"sum: {store: c, value: float(value)}", "join: {stream: o, within: 1s, store: c, value: value}", "join: {stream: o, within: 2s, store: c, value: value}",
	} {
		h := hash(step)
		if other, there := seen[h]; there {
			t.Errorf("%s and %s have one hash", step, other)
		}
		seen[h] = step
	}
}
