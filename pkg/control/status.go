package control

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// State is what an instance as a whole is doing.
type State string

// The states.
const (
	Starting State = "starting"
	Running  State = "running"
	Draining State = "draining" // leaving, with tasks left
	Drained  State = "drained"  // leaving, nothing left
	Stopping State = "stopping"
)

// Status is what an instance says of itself. Readers take one that is older than StaleAfter as that of an
// instance that is gone.
type Status struct {
	Version     int                `json:"v"`
	Instance    string             `json:"instance"`
	Incarnation assign.Incarnation `json:"incarnation"`
	Member      string             `json:"member"` // id in the group; empty: none yet
	Generation  int32              `json:"generation"`
	State       State              `json:"state"`
	Labels      map[string]string  `json:"labels,omitempty"`
	Capacity    uint32             `json:"capacity,omitempty"` // as configured; 0: not known, counts as 1
	Active      []string           `json:"active,omitempty"`
	Learning    []Learning         `json:"learning,omitempty"`
	Standby     []string           `json:"standby,omitempty"`
	Lag         map[string]int64   `json:"lag,omitempty"`          // input records behind, per active task
	DeadlineMs  int64              `json:"deadline_ms,omitempty"`  // of draining, ms since the epoch; 0: none
	Failed      []Failure          `json:"failed,omitempty"`       // tasks that cannot go on, at most MaxFailed of them
	FailedTasks int                `json:"failed_tasks,omitempty"` // how many there are
	BadGlobals  []BadGlobal        `json:"bad_globals,omitempty"`  // global tables with records that cannot be read
	Left        string             `json:"left,omitempty"`         // why it has left: drained, timeout or now
	Behind      map[string]int64   `json:"behind,omitempty"`       // per task being learned, the most changelog records that it was behind
	Rates       Rates              `json:"rates,omitzero"`
	Load        Load               `json:"load,omitzero"`
	Counts      Counts             `json:"counts,omitzero"`
	Handovers   []Handover         `json:"handovers,omitempty"` // tasks taken of late, the newest last, at most MaxHandovers
	Sources     [][]string         `json:"sources,omitempty"`   // of each subtopology that it knows: the topics that its tasks consume
	Address     string             `json:"address,omitempty"`   // URL at which others find its admin side; empty: nowhere
	UpdatedMs   int64              `json:"updated_ms"`          // by the instance's clock

	Seen time.Time `json:"seen,omitzero"` // when Kafka got it; set by readers
}

// Learning is a learner's progress.
type Learning struct {
	Task  string `json:"task"`
	Lag   int64  `json:"lag"` // changelog records behind
	Ready bool   `json:"ready"`
}

// Rates are records per second over the last seconds, of topics that are not changelogs.
type Rates struct {
	In  float64 `json:"in"`
	Out float64 `json:"out"`
}

// Load is how much of what an instance can do it does, over the last seconds.
type Load struct {
	Arriving   float64 `json:"arriving"`              // input records per second that are new for its active tasks, processed or not
	Threads    int     `json:"threads"`               // tasks that can compute at one time; 0: not told
	Busy       float64 `json:"busy"`                  // threads that computed, on the average
	StateBytes int64   `json:"state_bytes,omitempty"` // of the tasks' databases on its disk
	FreeBytes  int64   `json:"free_bytes,omitempty"`  // on that disk; 0: not known
}

// Headroom is the share of the threads that has nothing to do, from 0 to 1. Threads that have no task do not count.
func (s *Status) Headroom() float64 {
	threads := min(s.Load.Threads, len(s.Active))
	if threads == 0 {
		return 1
	}
	return min(1, max(0, 1-s.Load.Busy/float64(threads)))
}

// InputLag is how many input records the active tasks are behind together.
func (s *Status) InputLag() (records int64) {
	for _, lag := range s.Lag {
		records += lag
	}
	return records
}

// Counts are since the start of the instance.
type Counts struct {
	In           int64 `json:"in"` // records read
	Out          int64 `json:"out"`
	Skipped      int64 `json:"skipped,omitempty"`
	DeadLettered int64 `json:"dead_lettered,omitempty"`
	Dropped      int64 `json:"dropped,omitempty"`  // had no key or value for an aggregate
	Failures     int64 `json:"failures,omitempty"` // times that a task could not go on
}

// Handover is a task that the instance took over live.
type Handover struct {
	Task       string  `json:"task"`
	From       string  `json:"from"` // the former owner's instance id
	Generation int32   `json:"generation"`
	AtMs       int64   `json:"at_ms"`      // of the first record here, by the instance's clock
	GapMs      float64 `json:"gap_ms"`     // since the former owner's last record, by the two clocks
	SlowestMs  float64 `json:"slowest_ms"` // longest time from a record's timestamp to its processing, of those that had gathered
	Records    int     `json:"records"`    // that had gathered
}

// MaxHandovers bounds the handovers of a status.
const MaxHandovers = 20

// Failure is what keeps a task from going on. The instance tries again, with growing pauses.
type Failure struct {
	Task     string `json:"task"`
	Error    string `json:"error"`
	Failures int    `json:"failures"` // in a row
}

// BadGlobal tells of records of a global table's topic that cannot be read.
type BadGlobal struct {
	Table   string `json:"table"`
	Records int64  `json:"records"` // since the start of the instance
	Error   string `json:"error"`   // of the last one
}

// Bounds of what a status says of failed tasks, so that it stays a small record when everything fails.
const (
	MaxFailed     = 20
	maxErrorBytes = 500
)

// Fail adds a task that cannot go on.
func (s *Status) Fail(task string, err error, failures int) {
	s.FailedTasks++
	if len(s.Failed) == MaxFailed {
		return
	}
	s.Failed = append(s.Failed, Failure{Task: task, Error: shortened(err), Failures: failures})
}

// BadGlobal adds a global table with records that cannot be read.
func (s *Status) BadGlobal(table string, records int64, err error) {
	s.BadGlobals = append(s.BadGlobals, BadGlobal{Table: table, Records: records, Error: shortened(err)})
}

// shortened is an error's message on one line; of none it is empty.
func shortened(err error) string {
	if err == nil {
		return ""
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxErrorBytes {
		text = strings.ToValidUTF8(text[:maxErrorBytes], "") + " ..."
	}
	return text
}

// Left values: how a leave ended.
const (
	LeftDrained = "drained"
	LeftTimeout = "timeout" // at the scale-down deadline, with tasks not handed over
	LeftNow     = "now"     // at once, as asked
)

// StaleAfter is the age at which a status no longer speaks of a running instance: three of them are missing.
const StaleAfter = 35 * time.Second

// Intervals at which an instance repeats its status.
const (
	heartbeat   = 10 * time.Second       // at the latest
	lagInterval = time.Second            // when lags have moved and something is learned
	minInterval = 100 * time.Millisecond // when anything else has changed
)

// Stale reports whether the instance has been silent for too long.
func (s *Status) Stale(now time.Time) bool { return now.Sub(s.Seen) > StaleAfter }

// due reports whether a status is to be published, given the last one published and the time since.
func due(last *Status, next Status, since time.Duration) bool {
	if last == nil || since >= heartbeat {
		return true
	}
	if since >= minInterval && !sameButLags(*last, next) {
		return true
	}
	return since >= lagInterval && !slices.Equal(last.Learning, next.Learning)
}

// sameButLags compares what does not move all the time, as lags and the number of attempts do.
func sameButLags(a, b Status) bool {
	sameFailure := func(a, b Failure) bool { return a.Task == b.Task && a.Error == b.Error }
	sameLearner := func(a, b Learning) bool { return a.Task == b.Task && a.Ready == b.Ready }
	return a.Incarnation == b.Incarnation && a.Member == b.Member && a.Generation == b.Generation && a.State == b.State &&
		a.DeadlineMs == b.DeadlineMs && a.Left == b.Left && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Active, b.Active) && slices.Equal(a.Standby, b.Standby) &&
		slices.EqualFunc(a.Learning, b.Learning, sameLearner) && slices.Equal(a.Handovers, b.Handovers) &&
		a.FailedTasks == b.FailedTasks && slices.EqualFunc(a.Failed, b.Failed, sameFailure) && slices.Equal(a.BadGlobals, b.BadGlobals)
}
