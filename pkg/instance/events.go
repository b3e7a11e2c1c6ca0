package instance

import (
	"context"
	"log/slog"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// logEvents logs transitions of tasks, and passes every event on.
func logEvents(log *slog.Logger, next tasks.Events) tasks.Events {
	return tasks.Events{
		PhaseChanged: func(p tasks.PhaseInfo) {
			log.Debug("task changed phase", "task", p.Task.String(), "from", p.From.String(), "to", p.To.String(),
				"member", p.Member, "generation", p.Generation)
			call(next.PhaseChanged, p)
		},
		Restored: func(r tasks.RestoreInfo) {
			log.Info("restored", "task", r.Task.String(), "records", r.Records, "took_ms", ms(r.Took.Seconds()), "local", r.Local)
			call(next.Restored, r)
		},
		Released: func(r tasks.ReleaseInfo) {
			log.Info("handover", "task", r.Task.String(), "role", "release", "generation", r.Release.Generation, "took_ms", ms(r.Took.Seconds()))
			if !r.Sent.IsZero() {
				log.Debug("committed", "tasks", r.Task.String(), "member", r.Lease.Member, "generation", r.Lease.Generation, "sent", r.Sent, "release", true)
			}
			call(next.Released, r)
		},
		TakenOver: func(t tasks.TakeoverInfo) {
			log.Info("handover", "task", t.Task.String(), "role", "take", "generation", t.Release.Generation, "from", t.Release.Owner,
				"gap_ms", ms(t.Gap.Seconds()), "slowest_ms", ms(t.Slowest.Seconds()), "records", t.Records)
			call(next.TakenOver, t)
		},
		TaskFailed: func(f tasks.FailureInfo) {
			log.Error("task cannot go on; trying again", "task", f.Task.String(), "failures", f.Failures, "retry", f.Retry.String(), "error", f.Err)
			call(next.TaskFailed, f)
		},
		Committed: func(c tasks.CommitInfo) {
			if c.Outcome != handover.Acknowledged {
				log.Info("a commit was not acknowledged", "tasks", len(c.Tasks), "member", c.Lease.Member, "generation", c.Lease.Generation,
					"unanswered", c.Outcome == handover.Unknown, "error", c.Err)
			} else if log.Enabled(context.Background(), slog.LevelDebug) {
				log.Debug("committed", "tasks", taskList(c.Tasks), "member", c.Lease.Member, "generation", c.Lease.Generation, "sent", c.Sent)
			}
			call(next.Committed, c)
		},
	}
}

// taskList is task ids with commas between.
func taskList(tasks []assign.TaskID) string {
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = t.String()
	}
	return strings.Join(names, ",")
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}

// ms gives milliseconds with a resolution of 0.1.
func ms(seconds float64) float64 { return float64(int64(seconds*1e4)) / 10 }
