package tasks

import (
	"context"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// How often the slow work on tasks is done.
const (
	purgeInterval    = 30 * time.Second // records of repartition topics that were processed
	currentInterval  = time.Minute      // idle tasks' state is noted to be up to date
	localInterval    = 10 * time.Minute // state on disk that is too old to be used
	progressInterval = 5 * time.Second  // restores that take long say how far they are
	purgeTimeout     = 20 * time.Second
)

// upkeepTimes are when each kind of upkeep was done last.
type upkeepTimes struct {
	purge, current, local, progress time.Time
	purging                         bool
}

// due says whether the interval has passed, and notes the time if so.
func due(last *time.Time, now time.Time, interval time.Duration) bool {
	if last.IsZero() {
		*last = now
	}
	if now.Sub(*last) < interval {
		return false
	}
	*last = now
	return true
}

// upkeep does what tasks need now and then.
func (m *Manager) upkeep(now time.Time) {
	u := &m.upkept
	if due(&u.purge, now, purgeInterval) {
		m.purge()
	}
	if due(&u.current, now, currentInterval) {
		for _, s := range m.slots {
			if s.mode == running && !s.closing {
				t := s.task
				t.box.post(t.markCurrent)
			}
		}
	}
	if due(&u.local, now, localInterval) {
		m.removeStale(now)
	}
	if due(&u.progress, now, progressInterval) {
		m.logRestores(now)
	}
}

// purge deletes what was processed from the repartition topics, which otherwise keep all their records.
func (m *Manager) purge() {
	if m.upkept.purging {
		return
	}
	before := map[TopicPartition]int64{}
	for _, s := range m.slots {
		for i, tp := range s.sub.sources(s.id) {
			if s.mode == running && s.sub.Sources[i].Internal && s.processed != nil && s.processed[i] > s.purged[tp] {
				before[tp] = s.processed[i]
			}
		}
	}
	if len(before) == 0 {
		return
	}
	m.upkept.purging = true
	m.async(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
		defer cancel()
		err := m.cfg.Logs.Purge(ctx, before)
		m.box.post(func() {
			m.upkept.purging = false
			if err != nil {
				m.log.Warn("processed records could not be purged from repartition topics, which grow until they can", "error", err)
				return
			}
			for _, s := range m.slots {
				for _, tp := range s.sub.sources(s.id) {
					if off, ok := before[tp]; ok {
						s.purged[tp] = off
					}
				}
			}
		})
	})
}

// markCurrent notes that an active task's store holds all of its changelogs.
func (t *task) markCurrent() {
	a := t.active
	if a == nil || t.db == nil {
		return
	}
	t.db.MarkCurrent()
	t.db.Trim() // nothing else does for an idle task
}

// removeStale removes closed state on disk that is older than its changelog's tombstones are kept: it
// would be rebuilt from the start if the task came back.
func (m *Manager) removeStale(now time.Time) {
	for _, l := range m.cfg.Engine.Local() {
		id, err := assign.ParseTaskID(l.Task)
		if err != nil || m.machine.Task(id).Phase != handover.Idle {
			continue
		}
		sub := m.cfg.subtopology(id)
		if sub == nil || l.Time.IsZero() || len(sub.Stores) == 0 {
			continue
		}
		keep := slices.MinFunc(sub.Stores, func(a, b state.StoreSpec) int { return int(a.Retention - b.Retention) }).Retention
		if keep <= 0 || now.Sub(l.Time) < keep {
			continue
		}
		m.log.Info("removing local state that is too old to be used", "task", l.Task, "from", l.Time)
		if err := m.cfg.Engine.Remove(l.Task); err != nil {
			m.log.Warn("old local state could not be removed", "task", l.Task, "error", err)
		}
	}
}

// logRestores says how far the restores are that the stream waits for.
func (m *Manager) logRestores(now time.Time) {
	for _, t := range sortedTasks(m.slots) {
		s := m.slots[t]
		if s.task == nil || s.mode != replaying || s.phase != handover.Opening || now.Sub(s.ordered) < progressInterval {
			continue
		}
		m.log.Info("restoring", "task", t.String(), "records", s.task.stats.restored.Load(), "lag", s.task.stats.copyLag.Load(),
			"since", now.Sub(s.ordered).Round(time.Second).String())
	}
}
