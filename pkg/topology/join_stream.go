package topology

import (
	"fmt"
	"time"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// streamJoinStep joins two streams: records of one key whose timestamps are near each other.
type streamJoinStep struct {
	joined
	with          *flow
	before, after int64 // ms by which the other record may be older, or younger
	grace         int64 // ms after which a record without a counterpart gives its result, behind its window
	mine, its     StoreSpec
}

func (s *streamJoinStep) String() string {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	text := fmt.Sprintf("stream %s within %s before and %s after", s.with.seg.stream, ms(s.before), ms(s.after))
	if s.grace > 0 {
		text += fmt.Sprintf(", grace %s", ms(s.grace))
	}
	return s.describe(text) + fmt.Sprintf(" (stores %s, %s)", s.mine.Name, s.its.Name)
}

func (s *streamJoinStep) joins() *flow       { return s.with }
func (s *streamJoinStep) keeps() []StoreSpec { return []StoreSpec{s.mine, s.its} }

func (s *streamJoinStep) start(c *chain, next operator) operator {
	keeps := s.before + s.after + s.grace
	a := newBuffer(c, &s.mine, keeps, s.kind != inner)
	b := newBuffer(c, &s.its, keeps, s.kind == outer)
	j := &streamJoin{streamJoinStep: s, p: c.p, mineBuf: a, itsBuf: b, next: next}
	c.others[s] = &streamJoinSide{streamJoin: j, side: b, other: a, before: s.after, after: s.before}
	return &streamJoinSide{streamJoin: j, mine: true, side: a, other: b, before: s.before, after: s.after}
}

// streamJoin is what both sides have in common.
type streamJoin struct {
	*streamJoinStep
	p               *Processor
	mineBuf, itsBuf *buffer
	next            operator
	out             message
}

// streamJoinSide takes the records of one side.
type streamJoinSide struct {
	*streamJoin
	mine          bool // it is that of the stream which has the step
	side, other   *buffer
	before, after int64 // ms by which a record of the other side may be older, or younger
}

func (o *streamJoinSide) process(m *message) error {
	switch {
	case m.value.null:
		o.p.NullValues++
		return nil
	case m.key.null && o.side.waits:
		return o.send(m, m.key, m.value, nullDatum(), m.ts) // it can have no counterpart
	case m.key.null:
		o.p.NullKeys++
		return nil
	}
	if err := window.CheckTime(m.ts); err != nil {
		return fault{err}
	}
	if err := m.key.encode(o.side.spec.Key, &o.p.slabs); err != nil {
		return fault{fmt.Errorf("key: %w", err)}
	}
	at, err := o.side.add(m.key.raw, &m.value, m.ts)
	if err != nil {
		return err
	}
	now, err := o.streamTime()
	if err != nil {
		return err
	}
	if m.ts >= now {
		if err := o.sendDue(m, now); err != nil {
			return err
		}
	}
	if err := o.match(m, at, now); err != nil {
		return err
	}
	return o.side.expire()
}

// match hands on a result for each counterpart of m. Without one m waits, or its time is over already.
func (o *streamJoinSide) match(m *message, at window.Place, now int64) error {
	found, err := o.other.find(m.key.raw, m.ts-o.before, m.ts+o.after)
	if err != nil {
		return err
	}
	for i := range found {
		f := &found[i]
		if err := o.other.matched(m.key.raw, f.Place); err != nil {
			return err
		}
		if err := o.send(m, m.key, m.value, f.value, max(m.ts, f.ts)); err != nil {
			return err
		}
	}
	if len(found) > 0 || !o.side.waits {
		return nil
	}
	if m.ts+o.after+o.grace < now {
		return o.send(m, m.key, m.value, nullDatum(), m.ts)
	}
	return o.side.wait(m.key.raw, at)
}

// streamTime is that of both sides together.
func (j *streamJoin) streamTime() (int64, error) {
	a, err := j.mineBuf.last()
	if err != nil {
		return 0, err
	}
	b, err := j.itsBuf.last()
	return max(a.Time, b.Time), err
}

// send hands on a result for a value of this side and one of the other.
func (o *streamJoinSide) send(m *message, key, value, other datum, ts int64) error {
	if !o.mine {
		value, other = other, value
	}
	o.out = *m
	o.out.key, o.out.ts = key, ts
	var err error
	if o.out.value, err = o.combine(&o.p.eval, &o.out, value, other); err != nil {
		return err
	}
	return o.next.process(&o.out)
}

// sendDue hands on the results of records that have found no counterpart and cannot find one any more, in order of time; those of
// the other stream first.
func (j *streamJoin) sendDue(m *message, now int64) error {
	mine, err := j.mineBuf.due(now - j.after - j.grace - 1)
	if err != nil {
		return err
	}
	its, err := j.itsBuf.due(now - j.before - j.grace - 1)
	if err != nil {
		return err
	}
	for len(mine)+len(its) > 0 {
		side := &streamJoinSide{streamJoin: j, mine: true, side: j.mineBuf}
		next := &mine
		if len(mine) == 0 || len(its) > 0 && its[0].Time <= mine[0].Time {
			side, next = &streamJoinSide{streamJoin: j, side: j.itsBuf}, &its
		}
		if err := side.sendAlone(m, (*next)[0]); err != nil {
			return err
		}
		*next = (*next)[1:]
	}
	return nil
}

// sendAlone hands on the result of one record. One that fails must not keep the others back.
func (o *streamJoinSide) sendAlone(m *message, e buffered) error {
	v, err := o.side.load(e)
	if err != nil {
		return err
	}
	if v.value.null {
		return nil // it was forgotten meanwhile
	}
	key, err := decodeDatum(o.side.spec.Key, e.key, false)
	if err != nil {
		return o.side.spec.corrupt(e.key)
	}
	before := o.p.mark()
	if err := o.send(m, key, v.value, nullDatum(), e.Time); err != nil {
		return o.p.failed(before, fmt.Errorf("result of the record at %d without a counterpart: %w", e.Time, err))
	}
	return nil
}
