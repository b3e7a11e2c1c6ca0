package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Summary is the outcome of a run. Its JSON form is that of `dev -o json`.
type Summary struct {
	OK         bool  `json:"ok"`          // all lines were processed, and no count is wrong
	RecordsIn  int64 `json:"records_in"`  // lines written, and acknowledged
	RecordsOut int64 `json:"records_out"` // records of the output topics
	// WrongCounts is how many words were counted wrongly; nil, or null: the application is not the word count, so that it
	// is not known what is right.
	WrongCounts *int               `json:"wrong_counts"`
	TasksMoved  int                `json:"tasks_moved"` // handovers while the stream went on; a task may move several times
	Rebalances  int32              `json:"rebalances"`  // in the same time
	MaxGapMs    float64            `json:"max_gap_ms"`
	GapsMs      map[string]float64 `json:"gaps_ms"` // the longest of each task that moved

	words   int // that were counted
	wrong   []wrongCount
	unread  int64  // records that were not processed
	setBack int64  // records that were skipped, dropped or written to a dead letter topic
	failure string // the first of a task, if records were not processed
	median  time.Duration
}

// summary puts the outcome together, when everything has ended.
func (r *run) summary() Summary {
	s := Summary{
		RecordsIn: r.generator.written(), RecordsOut: r.output.read(), Rebalances: r.rebalances, GapsMs: make(map[string]float64), unread: r.unread,
	}
	if !r.app.own() {
		expected := r.generator.expected()
		s.words, s.wrong = len(expected), compare(expected, r.output.got())
		wrong := len(s.wrong)
		s.WrongCounts = &wrong
	}
	for _, w := range r.workers {
		t := w.Totals()
		s.setBack += t.Skipped + t.DeadLettered + t.Dropped
	}
	moved, failures := r.moves.since(0, 0)
	s.addMoves(moved)
	if len(failures) > 0 {
		s.failure = failures[0]
	}
	s.OK = len(s.wrong) == 0 && s.unread == 0
	return s
}

func (s *Summary) addMoves(moved []move) {
	s.TasksMoved = len(moved)
	var gaps []time.Duration
	for _, m := range moved {
		gaps = append(gaps, m.gap)
		ms := math.Round(float64(m.gap)/float64(time.Millisecond)*10) / 10
		s.GapsMs[m.task.String()] = max(s.GapsMs[m.task.String()], ms)
		s.MaxGapMs = max(s.MaxGapMs, ms)
	}
	if len(gaps) > 0 {
		slices.Sort(gaps)
		s.median = gaps[len(gaps)/2]
	}
}

// listedWrong is how many wrong counts an error names.
const listedWrong = 5

// Err says what is wrong; nil if nothing is.
func (s Summary) Err() error {
	var problems []error
	if s.unread > 0 {
		why := ""
		if s.failure != "" {
			why = ": " + s.failure
		}
		problems = append(problems, fmt.Errorf("%s records were written and not processed%s", thousands(s.unread), why))
	}
	if n := len(s.wrong); n > 0 {
		var examples []string
		for i, w := range s.wrong {
			if i == listedWrong {
				examples = append(examples, "...")
				break
			}
			examples = append(examples, fmt.Sprintf("%q is %d, not %d", w.word, w.got, w.wants))
		}
		problems = append(problems, fmt.Errorf("%s of %s counts are wrong: %s", thousands(int64(n)), thousands(int64(s.words)), strings.Join(examples, ", ")))
	}
	return errors.Join(problems...)
}

// WriteJSON writes the summary on one line.
func (s Summary) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(s) }

// WriteText writes the summary for people.
func (s Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s lines in, %s records out.", thousands(s.RecordsIn), thousands(s.RecordsOut))
	switch {
	case s.WrongCounts == nil && s.unread == 0:
		b.WriteString(" Every line was processed; what your topology made of it is not checked.")
	case s.WrongCounts != nil && len(s.wrong) == 0:
		fmt.Fprintf(&b, " All %s counts are right.", thousands(int64(s.words)))
	}
	b.WriteString("\n")
	if s.setBack > 0 {
		fmt.Fprintf(&b, "%s records were skipped, dropped or written to a dead letter topic, as the file says.\n", thousands(s.setBack))
	}
	if s.TasksMoved > 0 {
		fmt.Fprintf(&b, "%d moves of tasks in %d rebalances; longest gap %s, median %s.\n",
			s.TasksMoved, s.Rebalances, short(time.Duration(s.MaxGapMs*float64(time.Millisecond))), short(s.median))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
