package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/streamworker/streamworker/pkg/query"
)

// foundRow is a key in a range with where it is from.
type foundRow struct {
	query.RangeRow
	query.Origin
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func writeStores(w io.Writer, s query.Stores, asJSON bool) error {
	if asJSON {
		return writeJSON(w, s)
	}
	if len(s.Stores) == 0 {
		_, err := fmt.Fprintln(w, "the application has no stores")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STORE\tKEY\tVALUE\tPARTITIONS\tWINDOW")
	for _, one := range s.Stores {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", one.Name, one.Key, one.Value, one.Partitions, cmp.Or(one.Window, "-"))
	}
	return t.Flush()
}

func writeAnswer(w io.Writer, a query.Answer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, a)
	}
	t := newRowTable(w)
	writeRow(t, a.Row, a.Origin)
	return t.Flush()
}

func writeRows(w io.Writer, store string, rows []foundRow, more bool, asJSON bool) error {
	if asJSON {
		return writeJSON(w, struct {
			Store string     `json:"store"`
			Rows  []foundRow `json:"rows"`
			More  bool       `json:"more"`
		}{store, rows, more})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no keys")
		return err
	}
	t := newRowTable(w)
	for _, r := range rows {
		writeRow(t, r.Row, r.Origin)
	}
	if err := t.Flush(); err != nil || !more {
		return err
	}
	_, err := fmt.Fprintln(w, "and more: --limit shows them, --from goes on from a key, --window-from from a time")
	return err
}

func newRowTable(w io.Writer) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tTIMESTAMP\tTASK\tINSTANCE\tROLE")
	return t
}

func writeRow(w io.Writer, r query.Row, from query.Origin) {
	role := from.Role
	switch {
	case role == "active":
	case from.Lag < 0:
		role += ", lag not known yet"
	default:
		role += fmt.Sprintf(", %s changes behind", thousands(from.Lag))
	}
	key := plain(r.Key)
	if r.Window != nil {
		key += fmt.Sprintf("@%d/%d", r.Start, r.End)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", key, plain(r.Value), time.UnixMilli(r.Timestamp).UTC().Format(time.RFC3339), from.Task, from.Instance, role)
}

// plain shows texts without quotes where nothing in them needs any.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && fmt.Sprintf("%q", text) == `"`+text+`"` {
		return text
	}
	return string(value)
}
