package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
	"github.com/streamworker/streamworker/pkg/topology"
)

// ErrOffsetGone is a committed offset that the input topic no longer holds, under on_out_of_range: fail.
var ErrOffsetGone = errors.New("the committed offset is no longer in the topic: records were deleted before they were processed; " +
	"set on_out_of_range to earliest or latest to go on without them")

// inputTrouble is what keeps a task from reading a source.
type inputTrouble struct {
	failure
	added time.Time // when the source was added anew the last time; zero: it waits for that
}

// readAhead begins to read the input of a task whose token is not there yet, at what is committed: the way from adding a
// partition to its first records takes as long as all the rest of a handover. What the former owner has processed by
// then is skipped.
func (m *Manager) readAhead(s *slot, t *task, st handover.TaskState, offsets []int64) {
	now := m.machine.Task(s.id)
	if s.task != t || s.closing || s.ahead || m.stopping || now.Epoch != st.Epoch || now.Phase != handover.Taking || slices.Min(offsets) < 0 {
		return
	}
	s.ahead = true
	m.env.input.add(t, st.Epoch, s.sub.sources(s.id), offsets)
}

// endReadAhead ends what readAhead has begun, and drops what that has brought.
func (m *Manager) endReadAhead(s *slot) {
	if s.ahead {
		s.ahead = false
		m.env.input.remove(s.task, s.sub.sources(s.id))
	}
}

// consumes says whether the slot still runs the task that a route was made for.
func (s *slot) consumes(r route) bool {
	return s != nil && s.task == r.task && !s.closing && s.mode == running && s.epoch == r.epoch
}

// inputFailed handles a source that cannot be read. The task stays as it is: it commits what it has done and
// can be handed over.
func (m *Manager) inputFailed(r route, err error) {
	s := m.slots[r.task.id]
	if s != nil && s.ahead && s.task == r.task && s.epoch == r.epoch {
		m.endReadAhead(s) // it is read once its token is there
		return
	}
	if !s.consumes(r) {
		return
	}
	if from := s.opening.offsets[r.source]; r.next < from {
		r.next = from // it was read ahead, where records may be deleted by now
		m.readFrom(s, r)
		return
	}
	src, tp := s.sub.Sources[r.source], s.sub.sources(s.id)[r.source]
	err = fmt.Errorf("%s partition %d at offset %d: %w", tp.Topic, tp.Partition, r.next, err)
	switch {
	case !errors.Is(err, kerr.OffsetOutOfRange):
		m.readAgain(s, r, err)
	case src.OnOutOfRange == topology.Fail:
		m.readAgain(s, r, fmt.Errorf("%w: %w", ErrOffsetGone, err))
	case src.OnOutOfRange == topology.Latest:
		m.readElsewhere(s, r, m.cfg.Logs.Ends)
	default:
		m.readElsewhere(s, r, m.cfg.Logs.Starts)
	}
}

// readAgain tells of the failure and tries again after a while.
func (m *Manager) readAgain(s *slot, r route, err error) {
	s.input.err, s.input.added = err, time.Time{}
	s.input.failures++
	wait := backoff(s.input.failures)
	m.totals.failures.Add(1)
	m.cfg.Events.TaskFailed(FailureInfo{Task: s.id, Err: err, Failures: s.input.failures, Retry: wait})
	m.async(func(ctx context.Context) {
		select {
		case <-time.After(wait):
			m.box.post(func() { m.readFrom(s, r) })
		case <-ctx.Done():
		}
	})
}

// readElsewhere goes on at a bound of the log, as the source's policy says.
func (m *Manager) readElsewhere(s *slot, r route, bound func(context.Context, []TopicPartition) (map[TopicPartition]int64, error)) {
	tp := s.sub.sources(s.id)[r.source]
	m.async(func(ctx context.Context) {
		got, err := bound(ctx, []TopicPartition{tp})
		m.box.post(func() {
			if !s.consumes(r) {
				return
			}
			off, ok := got[tp]
			if err == nil && !ok {
				err = errors.New("no answer")
			}
			if err != nil {
				m.readAgain(s, r, fmt.Errorf("%s partition %d: finding where to go on: %w", tp.Topic, tp.Partition, err))
				return
			}
			m.log.Warn("the committed offset is gone; going on elsewhere as on_out_of_range says",
				"task", s.id.String(), "topic", tp.Topic, "partition", tp.Partition, "offset", off)
			r.next = off
			// Behind what the task has at hand, which is from before the gap.
			r.task.inbox.put(inputBatch{source: r.source, epoch: r.epoch, moved: true, to: off}, math.MaxInt, nil)
			r.task.box.signal()
			m.readFrom(s, r)
		})
	})
}

// readFrom consumes a source anew.
func (m *Manager) readFrom(s *slot, r route) {
	if s.consumes(r) {
		s.input.added = time.Now()
		m.env.input.addOne(s.sub.sources(s.id)[r.source], r)
	}
}
