package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// Source is an instance. All its functions answer at once.
type Source interface {
	Status() control.Status
	Totals() tasks.Totals
}

// collector reads the instance when metrics are asked for.
type collector struct {
	source Source

	records, changes, restored, bad, late  *prometheus.Desc
	moves, failures, aborts                *prometheus.Desc
	state, roles, generation, lag, learner *prometheus.Desc
	failing                                *prometheus.Desc

	busy, threads, headroom, arriving, capacity *prometheus.Desc
	draining, deadline, stateBytes, freeBytes   *prometheus.Desc
}

func newCollector(s Source) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+name, help, labels, nil)
	}
	return &collector{
		source:     s,
		records:    desc("records_total", "Records read from and written to topics that are not changelogs.", "direction"),
		changes:    desc("changelog_records_total", "Records written to changelogs."),
		restored:   desc("restored_records_total", "Changelog records replayed to restore state, by learners and standbys too."),
		bad:        desc("bad_records_total", "Records that could not be processed, by what was done with them; dropped: an aggregate found no key or value.", "handling"),
		late:       desc("late_records_total", "Records that came too late for every window that they belong to."),
		moves:      desc("handovers_total", "Tasks handed over live.", "role"),
		failures:   desc("task_failures_total", "Times that a task could not go on."),
		aborts:     desc("transaction_aborts_total", "Transactions aborted, under exactly once. A planned move aborts none."),
		state:      desc("instance_state", "1 for the state that the instance is in.", "state"),
		roles:      desc("tasks", "Tasks on this instance by role.", "role"),
		generation: desc("group_generation", "Generation of the group that the instance is in."),
		lag:        desc("input_lag_records", "Input records that an active task is behind.", "task"),
		failing:    desc("failing_tasks", "Tasks that cannot go on at present; status says why."),
		learner:    desc("learner_lag_records", "Changelog records that a learner is behind.", "task"),
		busy:       desc("processing_seconds_total", "Time in which tasks computed, summed over the threads."),
		threads:    desc("threads", "Tasks that can compute at one time."),
		headroom:   desc("headroom_ratio", "Share of the threads that had nothing to do over the last seconds, of those that have a task."),
		arriving:   desc("arriving_records_per_second", "Input records that are new for the active tasks, processed or not, over the last seconds."),
		capacity:   desc("capacity", "The instance's share of the tasks, beside that of others, as configured."),
		draining:   desc("drain_tasks", "Tasks that a leaving instance has not handed over yet; 0 if it is not leaving."),
		deadline:   desc("drain_deadline_timestamp_seconds", "When a leaving instance leaves at the latest; absent without a timeout."),
		stateBytes: desc("state_bytes", "What the tasks' databases take on disk; absent if that is not known."),
		freeBytes:  desc("state_free_bytes", "What is free on the disk of the state directory; absent if that is not known."),
	}
}

// Describe lists the metrics.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.records, c.changes, c.restored, c.bad, c.late, c.moves, c.failures, c.aborts,
		c.state, c.roles, c.generation, c.lag, c.learner, c.failing,
		c.busy, c.threads, c.headroom, c.arriving, c.capacity, c.draining, c.deadline, c.stateBytes, c.freeBytes,
	} {
		ch <- d
	}
}

// Collect reads the instance.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	t := c.source.Totals()
	counter(c.records, t.RecordsIn, "in")
	counter(c.records, t.RecordsOut, "out")
	counter(c.changes, t.Changes)
	counter(c.restored, t.Restored)
	counter(c.bad, t.Skipped, "skipped")
	counter(c.bad, t.DeadLettered, "dead_lettered")
	counter(c.bad, t.Dropped, "dropped")
	counter(c.late, t.Late)
	counter(c.moves, t.Takeovers, "take")
	counter(c.moves, t.Releases, "release")
	counter(c.failures, t.Failures)
	counter(c.aborts, t.Aborts)

	s := c.source.Status()
	for _, state := range []control.State{control.Starting, control.Running, control.Draining, control.Drained, control.Stopping} {
		in := int64(0)
		if s.State == state {
			in = 1
		}
		gauge(c.state, in, string(state))
	}
	gauge(c.generation, int64(s.Generation))
	gauge(c.roles, int64(len(s.Active)), "active")
	gauge(c.roles, int64(len(s.Learning)), "learner")
	gauge(c.roles, int64(len(s.Standby)), "standby")
	gauge(c.failing, int64(s.FailedTasks))
	number := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, t, v)
	}
	number(c.busy, prometheus.CounterValue, t.Busy.Seconds())
	number(c.headroom, prometheus.GaugeValue, s.Headroom())
	number(c.arriving, prometheus.GaugeValue, s.Load.Arriving)
	gauge(c.threads, int64(s.Load.Threads))
	gauge(c.capacity, int64(max(1, s.Capacity)))
	left := 0
	if s.State == control.Draining {
		left = len(s.Active)
	}
	gauge(c.draining, int64(left))
	if s.DeadlineMs > 0 {
		number(c.deadline, prometheus.GaugeValue, float64(s.DeadlineMs)/1000)
	}
	if s.Load.FreeBytes > 0 {
		gauge(c.stateBytes, s.Load.StateBytes)
		gauge(c.freeBytes, s.Load.FreeBytes)
	}
	for task, lag := range s.Lag {
		gauge(c.lag, lag, task)
	}
	for _, l := range s.Learning {
		if l.Lag >= 0 { // known
			gauge(c.learner, l.Lag, l.Task)
		}
	}
}
