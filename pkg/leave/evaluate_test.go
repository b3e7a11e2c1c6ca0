package leave

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The script gives the facts on one line each, times in seconds since the mark.
func TestEvaluate(t *testing.T) {
	datadriven.RunTest(t, "testdata/evaluate", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "evaluate" {
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			f := parseFacts(t, line)
			got := Evaluate(f)
			out.WriteString(got.Phase.String() + ": " + got.Action.String())
			if !got.Wake.IsZero() {
				out.WriteString(", wake at " + got.Wake.Sub(origin).String())
			}
			if got.Stalled {
				out.WriteString(", stalled")
			}
			out.WriteString("\n")
		}
		return out.String()
	})
}

var origin = time.UnixMilli(1_700_000_000_000)

func parseFacts(t *testing.T, line string) Facts {
	t.Helper()
	f := Facts{Now: origin, Progress: origin}
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "now":
			f.Now = origin.Add(parseDuration(t, value))
		case "progress":
			f.Progress = origin.Add(parseDuration(t, value))
		case "order":
			f.Order = &Order{Deadline: parseDeadline(t, value)}
		case "announced":
			d := parseDeadline(t, value)
			f.Announced = &d
		case "remaining":
			f.Remaining = int(value[0] - '0')
		case "settled":
			f.Settled = true
		default:
			t.Fatalf("unknown fact %q", word)
		}
	}
	return f
}

func parseDuration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// parseDeadline reads none, now, default or a duration since origin.
func parseDeadline(t *testing.T, s string) Deadline {
	t.Helper()
	var d Deadline
	if d.UnmarshalText([]byte(s)) == nil {
		return d
	}
	return At(origin.Add(parseDuration(t, s)))
}

func TestDeadline(t *testing.T) {
	at := func(s time.Duration) Deadline { return At(origin.Add(s)) }
	for _, c := range []struct {
		a, b, want Deadline
	}{
		{Never, Never, Never},
		{Never, at(5), at(5)},
		{at(5), Never, at(5)},
		{at(time.Second), at(time.Minute), at(time.Second)},
		{at(time.Minute), at(time.Second), at(time.Second)},
		{Now, at(1), Now},
		{Never, Now, Now},
	} {
		if got := c.a.Earlier(c.b); got != c.want {
			t.Errorf("the earlier of %s and %s is %s, want %s", c.a, c.b, got, c.want)
		}
	}
	for _, d := range []Deadline{Default, Never, Now, at(0), at(1234 * time.Millisecond)} {
		text, _ := d.MarshalText()
		var back Deadline
		if err := back.UnmarshalText(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		ta, oka := d.Time()
		tb, okb := back.Time()
		if oka != okb || !ta.Equal(tb) || d.kind != back.kind {
			t.Errorf("%s came back as %s", d, back)
		}
	}
	if After(origin, 0) != Never || After(origin, time.Second) != at(time.Second) {
		t.Error("After: zero is no timeout, else it counts from now")
	}
	if Never.UnixMilli() != 0 || at(time.Second).UnixMilli() != origin.UnixMilli()+1000 {
		t.Error("UnixMilli: 0 for none")
	}
}

func TestAccept(t *testing.T) {
	const timeout = 10 * time.Minute
	later := origin.Add(time.Minute)
	at := func(d time.Duration) Deadline { return At(origin.Add(d)) }
	for _, c := range []struct {
		name    string
		current Deadline // Default: none in force
		mark    Deadline
		want    Deadline
	}{
		{"first mark takes the instance's timeout, from when it is heard of", Default, Default, at(11 * time.Minute)},
		{"first mark's own deadline counts", Default, at(time.Hour), at(time.Hour)},
		{"a repeated mark does not start the time anew", at(10 * time.Minute), Default, at(10 * time.Minute)},
		{"a later deadline counts", at(10 * time.Minute), at(time.Hour), at(time.Hour)},
		{"an earlier deadline counts", at(10 * time.Minute), at(2 * time.Minute), at(2 * time.Minute)},
		{"the deadline can be taken away", at(10 * time.Minute), Never, Never},
		{"now counts at once", Never, Now, Now},
		{"now is not taken back by another mark", Now, Never, Now},
	} {
		var current *Order
		if c.current != Default {
			current = &Order{Deadline: c.current, Since: origin}
		}
		got := Accept(current, Mark{Deadline: c.mark}, later, timeout)
		if got.Deadline != c.want {
			t.Errorf("%s: deadline %s, want %s", c.name, got.Deadline, c.want)
		}
		if current != nil && !got.Since.Equal(origin) {
			t.Errorf("%s: the drain began at %s", c.name, got.Since)
		}
	}
}
