package tasks

import (
	"context"
	"time"
)

// How long a task with several sources waits for one that has nothing at hand although its log goes on: the records may be
// on their way. A few offsets may be no records at all, but marks of transactions.
const (
	sourceWait  = 500 * time.Millisecond
	markersMost = 16
	markersWait = 50 * time.Millisecond
)

// picking chooses among the sources of a task: records are processed in order of their timestamps, as far as they are at hand.
// Records of one source stay in order of their offsets. It belongs to the task's goroutine.
type picking struct {
	sources []pickSource
	until   time.Time // a source is waited for until then; zero: none is
}

// pickSource is one source.
type pickSource struct {
	batch  inputBatch // what is left of the batch at hand
	end    int64      // the log's end as last heard; -1: not heard yet
	since  time.Time  // since when it is waited for; zero: it is not
	passed bool       // it was waited for in vain: the others go on until it brings something
}

func newPicking(sources int) *picking {
	p := &picking{sources: make([]pickSource, sources)}
	for i := range p.sources {
		p.sources[i].end = -1
	}
	return p
}

// take notes a batch.
func (s *pickSource) take(b inputBatch) {
	s.batch, s.end = b, max(s.end, b.end)
	s.since, s.passed = time.Time{}, false
	if last := b.records[len(b.records)-1]; last.Attrs.IsTransactional() && last.Offset+2 == s.end {
		s.end-- // of a transaction's last record, only its mark is left
	}
}

// awaits tells until when the source is to be waited for; zero: it is not. next is the offset that it goes on at.
func (s *pickSource) awaits(next int64, now time.Time) time.Time {
	if len(s.batch.records) > 0 || s.passed || s.end >= 0 && next >= s.end {
		return time.Time{}
	}
	if s.since.IsZero() {
		s.since = now
	}
	wait := sourceWait
	if s.end >= 0 && s.end-next <= markersMost {
		wait = markersWait
	}
	if until := s.since.Add(wait); until.After(now) {
		return until
	}
	s.since, s.passed = time.Time{}, true
	return time.Time{}
}

// pick returns the source of the next record and how many records of it may be processed before another source's turn
// comes; -1 if there is nothing to do now.
func (p *picking) pick(offsets []int64, now time.Time) (source, n int) {
	p.until = time.Time{}
	source = -1
	for i := range p.sources {
		s := &p.sources[i]
		if until := s.awaits(offsets[i], now); !until.IsZero() && (p.until.IsZero() || until.Before(p.until)) {
			p.until = until
		}
		if len(s.batch.records) > 0 && (source < 0 || s.batch.records[0].Timestamp.Before(p.sources[source].batch.records[0].Timestamp)) {
			source = i
		}
	}
	if source < 0 || !p.until.IsZero() {
		return -1, 0
	}
	recs := p.sources[source].batch.records
	n = min(len(recs), chunkSize)
	for i := range p.sources {
		if i == source || len(p.sources[i].batch.records) == 0 {
			continue
		}
		other := p.sources[i].batch.records[0].Timestamp
		for k, r := range recs[:n] {
			if r.Timestamp.After(other) || i < source && !r.Timestamp.Before(other) {
				n = k
				break
			}
		}
	}
	return source, n
}

// empty tells whether nothing is at hand.
func (p *picking) empty() bool {
	for i := range p.sources {
		if len(p.sources[i].batch.records) > 0 {
			return false
		}
	}
	return true
}

// pickNext is next for a task with several sources.
func (t *task) pickNext(a *processing) bool {
	p := a.picking
	parts := t.sub.sources(t.id)
	for i := range p.sources {
		for len(p.sources[i].batch.records) == 0 {
			b, ok := t.inbox.nextOf(i, func() { t.env.input.resume(parts) })
			if !ok {
				break
			}
			if b = t.wanted(a, b); len(b.records) > 0 {
				p.sources[i].take(b)
			}
		}
	}
	source, n := p.pick(a.offsets, time.Now())
	if source < 0 {
		for i := range p.sources {
			if !p.sources[i].since.IsZero() { // it may be held back because others have filled the inbox
				t.inbox.letIn(i, func() { t.env.input.resume(parts[i : i+1]) })
			}
		}
		return false
	}
	batch := p.sources[source].batch
	a.batch = batch
	if a.batch.records = batch.records[:n]; n < len(batch.records) {
		a.batch.bytes = 0 // they are counted with the last part
	}
	p.sources[source].batch.records = batch.records[n:]
	return true
}

// waitsForSource is the time for which a task that has nothing to do waits for one of its sources; 0: for none.
func (t *task) waitsForSource(now time.Time) time.Duration {
	if a := t.active; a == nil || a.stopped || a.picking == nil || a.picking.until.IsZero() {
		return 0
	}
	return max(time.Millisecond, t.active.picking.until.Sub(now))
}

// askEnds asks for the ends of a task's sources, so that it knows which of them have something to wait for.
func (m *Manager) askEnds(s *slot, t *task, epoch uint64) {
	parts := s.sub.sources(s.id)
	if len(parts) < 2 {
		return
	}
	m.async(func(ctx context.Context) {
		ends, err := m.cfg.Logs.Ends(ctx, parts)
		t.box.post(func() {
			a := t.active
			if err != nil || a == nil || a.epoch != epoch || a.picking == nil {
				return // it waits for a while as if there were something
			}
			for i, tp := range parts {
				a.picking.sources[i].end = max(a.picking.sources[i].end, ends[tp])
			}
		})
	})
}
