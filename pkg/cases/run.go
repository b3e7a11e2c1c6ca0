package cases

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/topologytest"
)

// Outcome is what came of a case.
type Outcome struct {
	Case     string    `json:"name"`
	Line     int       `json:"line"`
	OK       bool      `json:"ok"`
	Failures []Failure `json:"failures"`
}

// Failure is something that is not as expected.
type Failure struct {
	Line    int    `json:"line"` // of the file with the cases, from 1
	Column  int    `json:"column"`
	Message string `json:"message"`
	Diff    []Diff `json:"diff,omitempty"` // all of what is compared, in order
}

// Diff is one line of a comparison.
type Diff struct {
	Sign string `json:"sign"` // "-": expected and not there; "+": there and not expected; " ": as expected
	Text string `json:"text"`
	Note string `json:"note,omitempty"` // where it is from
}

// Run runs the cases whose names the filter lets pass. The error is not one of a case.
func (f *File) Run(filter func(name string) bool) ([]Outcome, error) {
	out := []Outcome{}
	for _, c := range f.Cases {
		if !filter(c.Name) {
			continue
		}
		o, err := f.run(c)
		if err != nil {
			return out, fmt.Errorf("%s:%v: %w", f.TestPath, c.place, err)
		}
		out = append(out, o)
	}
	return out, nil
}

func (f *File) run(c *Case) (Outcome, error) {
	o := Outcome{Case: c.Name, Line: c.place.line, Failures: []Failure{}}
	d, err := topologytest.New(topologytest.Config{Topology: f.Topology})
	if err != nil {
		return o, err
	}
	for _, s := range c.steps {
		o.fail(s.place, s.apply(d), nil)
	}
	for _, want := range c.outputs {
		diff, at := c.compareOutputs(want, d.Written(want.topic))
		o.fail(at, differs(diff, "topic %s has other records than expected", want.topic), diff)
	}
	for _, want := range c.tables {
		diff, at := compareTable(want, d.Table(want.name))
		o.fail(at, differs(diff, "the table of topic %s differs", want.name), diff)
	}
	for _, want := range c.stores {
		rows, err := d.Store(want.name)
		if err != nil {
			return o, errors.Join(err, d.Close())
		}
		diff, at := compareTable(want, rows)
		o.fail(at, differs(diff, "store %s differs", want.name), diff)
	}
	o.OK = len(o.Failures) == 0
	return o, d.Close()
}

func (o *Outcome) fail(at place, message string, diff []Diff) {
	if message != "" {
		o.Failures = append(o.Failures, Failure{Line: at.line, Column: at.column, Message: message, Diff: diff})
	}
}

func differs(diff []Diff, format, name string) string {
	if !slices.ContainsFunc(diff, func(d Diff) bool { return d.Sign != same }) {
		return ""
	}
	return fmt.Sprintf(format, name)
}

// apply takes the step, and says what is wrong with what came of it; "" if nothing is.
func (s step) apply(d *topologytest.Driver) string {
	if s.advance > 0 {
		if err := d.Advance(s.advance); err != nil {
			return "a timer has failed: " + err.Error()
		}
		return ""
	}
	err := d.Pipe(s.record)
	switch {
	case s.failure == "" && err != nil:
		return "the input was refused: " + err.Error()
	case s.failure != "" && err == nil:
		return fmt.Sprintf("the input was processed; expected is an error with %q", s.failure)
	case s.failure != "" && !strings.Contains(err.Error(), s.failure):
		return fmt.Sprintf("the error has no %q: %v", s.failure, err)
	}
	return ""
}

// from says which input caused a record.
func (c *Case) from(input int) string {
	n := -1
	for _, s := range c.steps {
		if s.advance > 0 {
			continue
		}
		if n++; n == input {
			return "of the input in line " + strconv.Itoa(s.place.line)
		}
	}
	return ""
}
