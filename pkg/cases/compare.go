package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
)

// The signs of a Diff.
const (
	same    = " "
	missing = "-"
	extra   = "+"
)

// text is a value as JSON, in which equal values are equal.
func text(v any) string {
	if v == nil {
		return "null"
	}
	raw, err := topology.JSON.Encode(v)
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	return string(raw)
}

// actual is what a record has for a field of outputFields.
func actual(r topologytest.Record, name string) any {
	switch name {
	case "key":
		return r.Key
	case "value":
		return r.Value
	case "ts":
		return r.Timestamp
	case "window_start", "window_end":
		switch {
		case r.Window == nil:
			return nil
		case name == "window_start":
			return r.Window.Start
		default:
			return r.Window.End
		}
	case "input":
		return r.Input
	default:
		headers := make(map[string]string)
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		return headers
	}
}

func (e record) matches(r topologytest.Record) bool {
	return !slices.ContainsFunc(e.fields, func(f expected) bool { return text(f.want) != text(actual(r, f.name)) })
}

func (e record) String() string {
	parts := make([]string, len(e.fields))
	for i, f := range e.fields {
		parts[i] = f.name + ": " + text(f.want)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// show writes a record as it could be expected.
func show(r topologytest.Record) string {
	names := []string{"key", "value", "ts"}
	if r.Window != nil {
		names = append(names, "window_start", "window_end")
	}
	if len(r.Headers) > 0 {
		names = append(names, "headers")
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + ": " + text(actual(r, name))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// compareOutputs aligns the expected records with those written, so that as many as possible match. The place is that of
// the first difference.
func (c *Case) compareOutputs(want outputs, got []topologytest.Record) ([]Diff, place) {
	n, m := len(want.records), len(got)
	// most[i][j] is how many of want[i:] and got[j:] can be matched in order.
	most := make([][]int, n+1)
	for i := range most {
		most[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			most[i][j] = max(most[i+1][j], most[i][j+1])
			if want.records[i].matches(got[j]) {
				most[i][j] = max(most[i][j], 1+most[i+1][j+1])
			}
		}
	}
	var diff []Diff
	at, found := want.place, false
	for i, j := 0, 0; i < n || j < m; {
		switch {
		case i < n && j < m && want.records[i].matches(got[j]) && most[i][j] == 1+most[i+1][j+1]:
			diff = append(diff, Diff{Sign: same, Text: want.records[i].String()})
			i, j = i+1, j+1
		case i < n && (j == m || most[i+1][j] >= most[i][j+1]):
			e := want.records[i]
			diff = append(diff, Diff{Sign: missing, Text: e.String(), Note: fmt.Sprintf("line %d", e.place.line)})
			if !found {
				at, found = e.place, true
			}
			i++
		default:
			diff = append(diff, Diff{Sign: extra, Text: show(got[j]), Note: c.from(got[j].Input)})
			j++
		}
	}
	return diff, at
}

// compareTable lists the rows in order of the key.
func compareTable(want table, got map[string]any) ([]Diff, place) {
	rows := make(map[string]row)
	keys := slices.Collect(maps.Keys(got))
	for _, r := range want.rows {
		rows[r.key] = r
		keys = append(keys, r.key)
	}
	slices.Sort(keys)
	var diff []Diff
	at, found := want.place, false
	for _, key := range slices.Compact(keys) {
		r, wanted := rows[key]
		value, there := got[key]
		if wanted && there && text(r.value) == text(value) {
			diff = append(diff, Diff{Sign: same, Text: text(key) + ": " + text(value)})
			continue
		}
		if wanted {
			diff = append(diff, Diff{Sign: missing, Text: text(key) + ": " + text(r.value), Note: fmt.Sprintf("line %d", r.place.line)})
			if !found {
				at, found = r.place, true
			}
		}
		if there {
			diff = append(diff, Diff{Sign: extra, Text: text(key) + ": " + text(value)})
		}
	}
	return diff, at
}
