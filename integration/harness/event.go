package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Event is a line of the structured log.
type Event struct {
	Time   time.Time
	Level  string
	Msg    string
	Fields map[string]any
}

// parseEvent reads a line of log.format json; false: it is something else, e.g. an error for the user.
func parseEvent(line []byte) (Event, bool) {
	var fields map[string]any
	if json.Unmarshal(line, &fields) != nil {
		return Event{}, false
	}
	e := Event{Fields: fields, Level: text(fields["level"]), Msg: text(fields["msg"])}
	e.Time, _ = time.Parse(time.RFC3339Nano, text(fields["time"]))
	return e, e.Msg != ""
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Text is a field as text, "" if it is absent.
func (e Event) Text(field string) string { return text(e.Fields[field]) }

// Number is a numeric field, 0 if it is absent.
func (e Event) Number(field string) float64 {
	n, _ := e.Fields[field].(float64)
	return n
}

// Takeover is a handover as the new owner's log tells it.
type Takeover struct {
	Instance   string
	Task       string
	Generation int32 // of the rebalance that ordered it
	At         time.Time
	Gap        time.Duration // from the last record processed by the old owner to the first by the new one
	Slowest    time.Duration // the slowest record that gathered during the move: from its timestamp to its processing
}

// Takeovers are the handovers to the given processes since a time, in order of time.
func Takeovers(since time.Time, processes ...*Process) []Takeover {
	var found []Takeover
	for _, p := range processes {
		for _, e := range p.Events() {
			if e.Msg != "handover" || e.Text("role") != "take" || e.Time.Before(since) {
				continue
			}
			found = append(found, Takeover{
				Instance: p.Name, Task: e.Text("task"), Generation: int32(e.Number("generation")), At: e.Time,
				Gap: millis(e.Number("gap_ms")), Slowest: millis(e.Number("slowest_ms")),
			})
		}
	}
	slices.SortFunc(found, func(a, b Takeover) int { return a.At.Compare(b.At) })
	return found
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Figures summarize durations.
type Figures struct {
	N                int
	Median, P99, Max time.Duration
}

// Summarize sorts its argument.
func Summarize(d []time.Duration) Figures {
	if len(d) == 0 {
		return Figures{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[min(len(d)-1, int(q*float64(len(d))))] }
	return Figures{N: len(d), Median: at(0.5), P99: at(0.99), Max: d[len(d)-1]}
}

func (f Figures) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
	return fmt.Sprintf("median %s, p99 %s, max %s of %d", ms(f.Median), ms(f.P99), ms(f.Max), f.N)
}
