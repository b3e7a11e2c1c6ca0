package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Metrics are the metrics of one instance.
type Metrics struct {
	registry *prometheus.Registry

	gap, slowest, release, restore prometheus.Histogram
	commit                         *prometheus.HistogramVec
}

// New returns metrics that count from now on.
func New(version string) *Metrics {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: namespace + name, Help: help, Buckets: buckets})
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		gap: histogram("handover_gap_seconds",
			"Time from the last record that the former owner of a task processed to the first one here.", handoverBuckets),
		slowest: histogram("handover_slowest_record_seconds",
			"Longest time from a record's timestamp to its processing, of the records that had gathered while a task moved.", handoverBuckets),
		release: histogram("release_seconds",
			"Time from the order to release a task to the acknowledged commit.", handoverBuckets),
		restore: histogram("restore_seconds",
			"Time to bring a task's state up to date before it ran here.", prometheus.ExponentialBuckets(0.01, 4, 10)),
		commit: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: namespace + "commit_seconds", Help: "Time that offset commits took.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"outcome"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: namespace + "build_info", Help: "Always 1; the label has the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.gap, m.slowest, m.release, m.restore, m.commit, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

const namespace = "streamworker_"

// handoverBuckets are fine where handovers are expected to be, from 5 ms to a minute.
var handoverBuckets = []float64{.005, .01, .02, .03, .05, .075, .1, .15, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Gatherer gives the metrics out.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Watch adds what the instance counts and shows.
func (m *Metrics) Watch(s Source) { m.registry.MustRegister(newCollector(s)) }

// Events are the functions that an instance calls.
func (m *Metrics) Events() tasks.Events {
	return tasks.Events{
		Restored: func(r tasks.RestoreInfo) { m.restore.Observe(r.Took.Seconds()) },
		Released: func(r tasks.ReleaseInfo) { m.release.Observe(r.Took.Seconds()) },
		TakenOver: func(t tasks.TakeoverInfo) {
			m.gap.Observe(t.Gap.Seconds())
			m.slowest.Observe(t.Slowest.Seconds())
		},
		Committed: func(c tasks.CommitInfo) {
			m.commit.WithLabelValues(outcomeName(c.Outcome)).Observe(c.Took.Seconds())
		},
	}
}

// outcomeName is an outcome of a commit as metrics and spans show it.
func outcomeName(o handover.Outcome) string {
	switch o {
	case handover.Acknowledged:
		return "acknowledged"
	case handover.Declined:
		return "refused"
	case handover.Unknown:
	}
	return "unanswered"
}
