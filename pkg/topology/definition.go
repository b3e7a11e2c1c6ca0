package topology

import (
	"fmt"
	"slices"
	"strings"
)

// Definition says what the rows of the store are: all that has to be the same where they are read. It is recorded with the state
// and outlives versions of the program. Names of stores and topics are not in it, nor what rows do not depend on:
// expressions, grace, retention, and when results are sent on.
func (s *StoreSpec) Definition() string {
	of := s.Of
	if of == "" {
		of = layoutNames[s.Layout]
	}
	parts := []string{of, fmt.Sprintf("key %s", s.Key), fmt.Sprintf("value %s", s.Value)}
	if s.Window != nil {
		plain := *s.Window
		plain.Grace = 0
		parts = append(parts, "window "+plain.String())
	}
	parts = append(parts, fmt.Sprintf("rows v%d", s.encoding()))
	return strings.Join(parts, "; ")
}

var layoutNames = map[Layout]string{Rows: "rows", Buffer: "join of streams", Index: "subscriptions", Timed: "times"}

// encoding is the version of the store's rows as docs/semantics.md describes their bytes. A change of these bytes raises it, for
// the kinds of stores that it is about: their rows of before are not read then.
func (s *StoreSpec) encoding() int { return 1 }

// Redefined says in words what differs between two definitions, e.g. "window: tumbling 1m0s → tumbling 5m0s"; "" if nothing does.
func Redefined(was, now string) string {
	type part struct{ name, is string }
	split := func(definition string) (parts []part) {
		for i, text := range strings.Split(definition, "; ") {
			if i == 0 {
				text = "kind " + text
			}
			name, is, _ := strings.Cut(text, " ")
			parts = append(parts, part{name, is})
		}
		return parts
	}
	old, parts := split(was), split(now)
	find := func(in []part, name string) string {
		if i := slices.IndexFunc(in, func(p part) bool { return p.name == name }); i >= 0 {
			return in[i].is
		}
		return "none"
	}
	var out []string
	for _, p := range parts {
		if before := find(old, p.name); before != p.is {
			out = append(out, fmt.Sprintf("%s: %s → %s", p.name, before, p.is))
		}
	}
	for _, p := range old {
		if find(parts, p.name) == "none" {
			out = append(out, fmt.Sprintf("%s: %s → none", p.name, p.is))
		}
	}
	return strings.Join(out, ", ")
}
