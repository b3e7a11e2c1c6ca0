package cases

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Report is the outcome of several files.
type Report struct {
	Files  []FileReport `json:"files"`
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
}

// FileReport is the outcome of one file's cases.
type FileReport struct {
	File  string    `json:"file"`  // with the topology
	Tests string    `json:"tests"` // with the cases
	Cases []Outcome `json:"cases"`
}

// Add adds the outcome of a file.
func (r *Report) Add(f *File, outcomes []Outcome) {
	r.Files = append(r.Files, FileReport{File: f.Path, Tests: f.TestPath, Cases: outcomes})
	for _, o := range outcomes {
		if o.OK {
			r.Passed++
		} else {
			r.Failed++
		}
	}
}

// WriteJSON prints the report as one JSON document.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText prints the report for people: a line for each file, and all that is not as expected.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Files {
		failed := 0
		for _, o := range f.Cases {
			if !o.OK {
				failed++
				f.writeFailed(&b, o)
			}
		}
		if failed == 0 {
			fmt.Fprintf(&b, "ok    %s  %s\n", f.File, counted(len(f.Cases)))
		}
	}
	if r.Failed > 0 {
		fmt.Fprintf(&b, "\n%s passed, %d failed\n", counted(r.Passed), r.Failed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f FileReport) writeFailed(b *strings.Builder, o Outcome) {
	fmt.Fprintf(b, "FAIL  %s  %s\n", f.File, o.Case)
	for _, fail := range o.Failures {
		fmt.Fprintf(b, "  %s:%d:%d: %s\n", f.Tests, fail.Line, fail.Column, fail.Message)
		wide := 0
		for _, d := range fail.Diff {
			if d.Note != "" {
				wide = max(wide, len(d.Text))
			}
		}
		for _, d := range fail.Diff {
			if d.Note == "" {
				fmt.Fprintf(b, "      %s %s\n", d.Sign, d.Text)
			} else {
				fmt.Fprintf(b, "      %s %-*s   %s\n", d.Sign, wide, d.Text, d.Note)
			}
		}
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 case"
	}
	return fmt.Sprintf("%d cases", n)
}
