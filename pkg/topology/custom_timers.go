package topology

import (
	"encoding/binary"
	"fmt"
	"time"
)

// streamClock is the stream time of a custom step, and when its timers are due. It is in a store, so that it goes where the task
// goes, and is taken back with a bad record.
type streamClock struct {
	rows      rows
	intervals []int64

	known bool // what follows is as the store has it
	since uint64
	time  int64 // -1: no record was seen yet
	due   []int64
	buf   []byte
}

func timerRow(i int) []byte { return fmt.Appendf(nil, "timer %d", i) }

var timeRow = []byte("stream time")

// advance moves stream time, and calls fire for the timers that are due by then. As with Kafka Streams a timer is due with the
// first record, and then at multiples of its interval; of several that were passed over at once there is one call.
func (k *streamClock) advance(ts int64, fire func(timer int, at int64) error) error {
	if err := k.load(); err != nil {
		return err
	}
	if ts > k.time {
		k.time = ts
		if err := k.put(timeRow, ts); err != nil {
			return err
		}
	}
	for i, interval := range k.intervals {
		if k.due[i] > k.time {
			continue
		}
		k.due[i] = nextDue(k.due[i], interval, k.time)
		if err := k.put(timerRow(i), k.due[i]); err != nil {
			return err
		}
		if err := fire(i, k.time); err != nil {
			return err
		}
	}
	return nil
}

// nextDue is when a timer is due that was so before, and is called now.
func nextDue(due, interval, now int64) int64 { return due + ((now-due)/interval+1)*interval }

func (k *streamClock) load() error {
	if k.known && k.since == k.rows.p.rollbacks {
		return nil
	}
	k.known, k.since, k.due = false, k.rows.p.rollbacks, make([]int64, len(k.intervals))
	var err error
	if k.time, err = k.get(timeRow, -1); err != nil {
		return err
	}
	for i := range k.due {
		if k.due[i], err = k.get(timerRow(i), 0); err != nil {
			return err
		}
	}
	k.known = true
	return nil
}

func (k *streamClock) get(row []byte, otherwise int64) (int64, error) {
	value, ok, err := k.rows.get(row)
	switch {
	case err != nil || !ok:
		return otherwise, err
	case len(value) != stampLen+8:
		return 0, k.rows.spec.corrupt(value)
	default:
		return int64(binary.BigEndian.Uint64(value[stampLen:])), nil
	}
}

func (k *streamClock) put(row []byte, n int64) error {
	k.buf = binary.BigEndian.AppendUint64(k.buf[:0], uint64(k.time))
	k.buf = binary.BigEndian.AppendUint64(k.buf, uint64(n))
	return k.rows.put(row, k.buf)
}

// Ticks reports whether there are timers by the wall clock, for which Tick is to be called.
func (p *Processor) Ticks() bool { return len(p.ticking) > 0 }

// Tick calls the timers by the wall clock that are due; the first time it only notes the time. It returns when it is to be called
// next, and whether something was written to stores or output. An error leaves the processor unusable: there is no record to
// stop before. Under on_error: skip and dead_letter, what a timer has done is taken back when it fails.
func (p *Processor) Tick(now time.Time) (next time.Time, changed bool, err error) {
	at := now.UnixMilli()
	least := int64(0)
	for _, o := range p.ticking {
		for i, interval := range o.WallTimers {
			switch due := o.wall[i]; {
			case due == 0:
				o.wall[i] = at + interval
			case due <= at:
				o.wall[i] = nextDue(due, interval, at)
				wrote, err := p.fire(o, i, at)
				if err != nil {
					return now, false, err
				}
				changed = changed || wrote
			}
			if least == 0 || o.wall[i] < least {
				least = o.wall[i]
			}
		}
	}
	return time.UnixMilli(least), changed, nil
}

// fire calls one timer by the wall clock.
func (p *Processor) fire(o *customOperator, timer int, at int64) (wrote bool, err error) {
	c := o.c
	o.tick.Timestamp = time.UnixMilli(at)
	o.ts, o.source = at, &o.tick
	c.m.source, c.bad, c.timer, p.current = &o.tick, false, o.Name, c
	defer func() { c.timer = "" }()
	before := p.mark()
	if err := o.user(o.run.WallTimers[timer], at); err != nil {
		if err = c.failed(before, err); err != nil {
			p.rollback(mark{})
			return false, err
		}
	}
	wrote = len(p.pending)+len(p.journal.entries) > 0
	p.settle()
	return wrote, nil
}
