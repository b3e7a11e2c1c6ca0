package scenario

import (
	"encoding/json"
	"io"
)

// Result is what happened in a scenario.
type Result struct {
	Rebalances []Rebalance `json:"rebalances"`
	Left       []string    `json:"left"`    // drained and timed-out members, in the order in which they left
	Stable     bool        `json:"stable"`  // another round would change nothing
	Skipped    []string    `json:"skipped"` // events for members that had already left
	Metrics    Metrics     `json:"metrics"`

	start string // the group before the first event
	trace []sample
}

// sample is how a run stood at a time.
type sample struct {
	at                float64 // seconds
	rebalances, moved int
	learners, idle    int     // learners at work; tasks without a runner
	restored, highest float64 // bytes; load
}

// Rebalance is one round that changed something.
type Rebalance struct {
	Trigger  string              `json:"trigger"`
	Joined   map[string]Joined   `json:"joined"`
	Assigned map[string]Assigned `json:"assigned"`

	leader string
	left   []string // drained by this round
	at     float64  // seconds since the first event
}

// Joined is what a member joined a round with. Revoked are the tasks that it gives up in it; Assigned is
// without them.
type Joined struct {
	Assigned []string `json:"assigned"`
	Revoked  []string `json:"revoked"`
	Learning []string `json:"learning"`
	Ready    []string `json:"ready"`
	Standby  []string `json:"standby"`
	Leaving  bool     `json:"leaving"`
	Leader   bool     `json:"leader"`
}

// Assigned is what a round gave a member.
type Assigned struct {
	Assigned []string `json:"assigned"`
	Revoked  []string `json:"revoked"`
	Learning []string `json:"learning"`
	Standby  []string `json:"standby"`
}

// Metrics say how much a scenario cost. What takes time is nil unless time passes, that is, the scenario settles or
// waits; MaxGroupBytes is nil if nothing measured the group.
type Metrics struct {
	Rebalances int `json:"rebalances"`  // rounds that changed something
	TasksMoved int `json:"tasks_moved"` // changes of a task's owner
	// Rounds are all rounds, those in which members only said how far they had come too; nil if rounds take no time.
	Rounds *int `json:"rounds"`
	// BytesRestored is what was read from changelogs to restore state, by learners and standbys too.
	BytesRestored *int64 `json:"bytes_restored"`
	// SecondsToBalance is the time in which something was left to restore or to move; nil if there still is at the end.
	SecondsToBalance *float64 `json:"seconds_to_balance"`
	// DoubleProcessingTaskSeconds is the time spent learning, summed over tasks.
	DoubleProcessingTaskSeconds *float64 `json:"double_processing_task_seconds"`
	// GapTaskSeconds is the time without a runner, summed over tasks.
	GapTaskSeconds *float64 `json:"gap_task_seconds"`
	// LongestGapSeconds is the longest time for which a task had no runner.
	LongestGapSeconds *float64 `json:"longest_gap_seconds"`
	// OverloadInstanceSeconds is the time in which an instance's tasks needed more than it has, summed over instances;
	// PeakLoad the most that one needed, as a share of what it has. Both are nil if no task has a load.
	OverloadInstanceSeconds *float64 `json:"overload_instance_seconds"`
	PeakLoad                *float64 `json:"peak_load"`
	MaxGroupBytes           *int     `json:"max_group_bytes"` // the largest group record
}

// WriteJSON writes the result as one JSON object.
func (r Result) WriteJSON(w io.Writer) error {
	return writeJSON(w, r)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
