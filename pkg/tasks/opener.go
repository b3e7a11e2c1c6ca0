package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
	"github.com/streamworker/streamworker/pkg/topology"
)

// How often the committed offset is asked for while a task waits for its release token. The wait is part
// of the gap. After waitLong it is asked for less often.
const (
	tokenPoll     = 3 * time.Millisecond
	tokenPollLong = 20 * time.Millisecond
	waitLong      = 2 * time.Second
	offsetsRetry  = 200 * time.Millisecond // after a failed request
	warnInterval  = 5 * time.Second        // between two warnings of it
	unstableAfter = time.Second            // longer than a transaction of a living instance takes
)

// lookup is a task whose committed offsets are wanted.
type lookup struct {
	task    assign.TaskID
	epoch   uint64
	sub     *Subtopology
	release assign.ReleaseID // with token: wait until it is there
	token   bool
	ahead   func(committed) // with token: told once what is committed before it is there; may be nil
	found   func(committed) // on the opener's goroutine
	number  uint64          // tells this wish from others for the task, also for the same order
	since   time.Time
}

// committed is what was found: the offsets in the order of the sources, -1 where none is committed, and
// the metadata of the first.
type committed struct {
	offsets []int64
	meta    handover.Metadata
}

// opener fetches committed offsets for all tasks that want them, in one request for all of them.
type opener struct {
	offsets Offsets
	// unstable is told now and then of tasks whose offsets stay unstable: a transaction on them is open.
	unstable func(lookup)
	log      *slog.Logger
	warned   time.Time // of the running goroutine alone

	mu     sync.Mutex
	wanted map[assign.TaskID]lookup
	wishes uint64 // so far
	wake   chan struct{}
}

func newOpener(offsets Offsets, unstable func(lookup), log *slog.Logger) *opener {
	return &opener{offsets: offsets, unstable: unstable, log: log, wanted: map[assign.TaskID]lookup{}, wake: make(chan struct{}, 1)}
}

// want asks for a task's offsets; it replaces an earlier wish for the same task.
func (o *opener) want(l lookup) {
	l.since = time.Now()
	o.mu.Lock()
	o.wishes++
	l.number = o.wishes
	o.wanted[l.task] = l
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// forget takes a wish back.
func (o *opener) forget(t assign.TaskID) {
	o.mu.Lock()
	delete(o.wanted, t)
	o.mu.Unlock()
}

// run serves wishes until the context ends.
func (o *opener) run(ctx context.Context) {
	for {
		wait, any := o.round(ctx)
		var again <-chan time.Time
		if any {
			again = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-again:
		}
	}
}

// round asks once for all that is wanted. It returns how long to wait before the next one, if any wish
// is left.
func (o *opener) round(ctx context.Context) (time.Duration, bool) {
	o.mu.Lock()
	asked := make([]lookup, 0, len(o.wanted))
	var parts []TopicPartition
	for _, l := range o.wanted {
		asked = append(asked, l)
		parts = append(parts, l.sub.sources(l.task)...)
	}
	o.mu.Unlock()
	if len(asked) == 0 {
		return 0, false
	}
	got, err := o.offsets.Fetch(ctx, parts)
	if err != nil && ctx.Err() == nil && time.Since(o.warned) > warnInterval {
		o.warned = time.Now()
		o.log.Warn("committed offsets cannot be fetched: tasks wait to be opened; trying again", "tasks", len(asked), "error", err)
	}
	if err != nil && len(got) == 0 {
		return offsetsRetry, true
	}
	wait, left := tokenPollLong, false
	for _, l := range asked {
		c, ok := l.match(got)
		if ok && o.done(l) {
			l.found(c)
			continue
		}
		left = true
		if l.ahead != nil && len(c.offsets) > 0 && o.told(l) {
			l.ahead(c)
		}
		if !l.token && time.Since(l.since) > unstableAfter {
			o.again(l)
			o.unstable(l)
		}
		if time.Since(l.since) < waitLong {
			wait = tokenPoll
		}
	}
	return wait, left
}

// told notes that a wish has been told what is committed before its token.
func (o *opener) told(l lookup) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, ok := o.wanted[l.task]
	if !ok || w.number != l.number {
		return false
	}
	w.ahead = nil
	o.wanted[l.task] = w
	return true
}

// again restarts the time for which a wish has waited.
func (o *opener) again(l lookup) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w, ok := o.wanted[l.task]; ok && w.number == l.number {
		w.since = time.Now()
		o.wanted[l.task] = w
	}
}

// done removes a wish, unless it was replaced or taken back while the request was on its way.
func (o *opener) done(l lookup) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w, ok := o.wanted[l.task]; !ok || w.number != l.number {
		return false
	}
	delete(o.wanted, l.task)
	return true
}

// match returns what was fetched for the wish, and whether it answers it. There are no offsets if some are not known.
func (l *lookup) match(got map[TopicPartition]Offset) (committed, bool) {
	var c committed
	answered := true
	for i, tp := range l.sub.sources(l.task) {
		off, ok := got[tp]
		if !ok {
			return committed{}, false // a transaction is pending on it
		}
		// What streamworker did not write has no committer and no token; its offset is good.
		meta, err := handover.ParseMetadata(off.Metadata)
		if err != nil {
			meta = handover.Metadata{}
		}
		if l.token && (meta.Token == nil || meta.Token.Release != l.release) {
			answered = false
		}
		if i == 0 {
			c.meta = meta
		}
		c.offsets = append(c.offsets, off.Offset)
	}
	return c, answered
}

// resolveStarts fills in where to begin for sources without a committed offset. It says whether there
// were any: their offsets are to be committed before the first record is processed.
func resolveStarts(ctx context.Context, logs Logs, sub *Subtopology, t assign.TaskID, offsets []int64) (bool, error) {
	var starts, ends []TopicPartition
	parts := sub.sources(t)
	for i, off := range offsets {
		switch {
		case off >= 0:
		case sub.Sources[i].Start == topology.Latest:
			ends = append(ends, parts[i])
		default:
			starts = append(starts, parts[i])
		}
	}
	if len(starts)+len(ends) == 0 {
		return false, nil
	}
	at := map[TopicPartition]int64{}
	for _, ask := range []struct {
		parts []TopicPartition
		of    func(context.Context, []TopicPartition) (map[TopicPartition]int64, error)
	}{{starts, logs.Starts}, {ends, logs.Ends}} {
		if len(ask.parts) == 0 {
			continue
		}
		got, err := ask.of(ctx, ask.parts)
		if err != nil {
			return false, fmt.Errorf("task %s has no committed offset; finding where to start: %w", t, err)
		}
		for tp, off := range got {
			at[tp] = off
		}
	}
	for i, off := range offsets {
		if off < 0 {
			o, ok := at[parts[i]]
			if !ok {
				return false, fmt.Errorf("task %s: no answer for the bounds of %s partition %d", t, parts[i].Topic, parts[i].Partition)
			}
			offsets[i] = o
		}
	}
	return true, nil
}
