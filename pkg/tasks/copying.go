package tasks

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/state"
)

// copying is the mode in which a task replays its changelogs.
type copying struct {
	position []int64 // per store: the next offset to apply
	end      []int64 // per store: the changelog's end as last heard; -1: not heard yet
	local    bool    // some state was there when it was opened, or when a learner or standby was to run

	since   time.Time // when the task was opened, or when one that was a learner or standby was to run
	targets []int64   // per store: positions to reach; nil: none is set
	reached func()
}

// open opens the task's state and begins to replay its changelogs. A failure goes to the function given.
func (t *task) open(failed func(error)) {
	if t.closed {
		return
	}
	n := len(t.sub.Stores)
	t.copy = &copying{position: make([]int64, n), end: make([]int64, n), since: time.Now()}
	if n == 0 {
		t.stats.copyLag.Store(0)
		return
	}
	db, err := t.env.cfg.Engine.Open(t.id.String(), t.sub.Stores)
	if err != nil {
		t.copy = nil
		failed(fmt.Errorf("opening the state of task %s: %w", t.id, err))
		return
	}
	t.db = db
	t.opened.Store(db)
	copy(t.copy.position, db.Checkpoint())
	for i := range t.sub.Stores {
		t.copy.end[i] = -1
		t.copy.local = t.copy.local || t.copy.position[i] > 0
		t.tail(i, failed)
	}
	t.measureCopy()
}

// tail begins to replay one store's changelog from its position.
func (t *task) tail(store int, failed func(error)) {
	topic := t.sub.Stores[store].Changelog
	t.env.cfg.Reader.Add(topic, t.id.Partition, t.copy.position[store], func(b state.Batch) {
		if !t.box.post(func() { t.apply(store, b, failed) }) {
			b.Done()
		}
	})
}

// apply takes one batch of a changelog into the store.
func (t *task) apply(store int, b state.Batch, failed func(error)) {
	defer b.Done()
	c := t.copy
	if c == nil {
		return // became active, or closed, while the batch was on its way
	}
	if b.Err != nil {
		t.copyError(store, b, failed)
		return
	}
	if b.Next >= c.position[store] { // with nothing new it notes that the state is up to date still
		t.env.copies <- struct{}{}
		err := t.db.ApplyChangelog(store, b.Records, b.Next, b.HighWatermark)
		<-t.env.copies
		if errors.Is(err, state.ErrStale) {
			t.startAnew(store, b, err.Error(), failed)
			return
		}
		if err != nil {
			failed(fmt.Errorf("applying changelog %s to task %s: %w", b.Topic, t.id, err))
			return
		}
		c.position[store] = b.Next
		t.stats.restored.Add(int64(len(b.Records)))
		t.env.totals.restored.Add(int64(len(b.Records)))
	}
	c.end[store] = b.HighWatermark
	t.measureCopy()
	t.checkTargets()
}

// copyError handles a changelog that cannot be read from the position that the state has.
func (t *task) copyError(store int, b state.Batch, failed func(error)) {
	c := t.copy
	anew := errors.Is(b.Err, state.ErrTopicChanged)
	if !anew && !errors.Is(b.Err, state.ErrOutOfRange) {
		failed(fmt.Errorf("reading changelog %s partition %d: %w", b.Topic, b.Partition, b.Err))
		return
	}
	reason := ""
	if anew {
		reason = "the changelog was deleted and made anew"
	} else if at := c.position[store]; at > 0 {
		reason = fmt.Sprintf("its position %d is outside the changelog, which holds %d to %d", at, b.LogStart, b.HighWatermark)
	}
	t.startAnew(store, b, reason, failed)
}

// startAnew replays a store from where its changelog begins. The reason says why what is here cannot be brought up to date: changes
// between the state and what is left of the log are lost, or the log is another one; "": there is nothing here.
func (t *task) startAnew(store int, b state.Batch, reason string, failed func(error)) {
	c := t.copy
	if reason != "" {
		if err := t.db.Reset(reason, store); err != nil {
			failed(fmt.Errorf("resetting the state of task %s: %w", t.id, err))
			return
		}
	}
	t.env.cfg.Reader.Remove(b.Topic, t.id.Partition)
	c.position[store], c.end[store] = b.LogStart, -1
	t.tail(store, failed)
	t.env.cfg.Reader.Urgent(b.Topic, b.Partition, c.reached != nil)
}

// restoreTo calls reached, once, as soon as every changelog is applied up to its target. A nil function
// takes the wish back.
func (t *task) restoreTo(targets []int64, reached func()) {
	if t.copy == nil {
		return
	}
	t.copy.targets, t.copy.reached = targets, reached
	if t.ahead {
		t.copy.since = time.Now()
		t.copy.local = t.copy.local || slices.Max(append(t.copy.position, 0)) > 0
	}
	for _, tp := range t.sub.changelogs(t.id) {
		t.env.cfg.Reader.Urgent(tp.Topic, tp.Partition, reached != nil)
	}
	t.checkTargets()
}

func (t *task) checkTargets() {
	c := t.copy
	if c == nil || c.reached == nil {
		return
	}
	for i, p := range c.position {
		if p < c.targets[i] {
			return
		}
	}
	reached := c.reached
	c.targets, c.reached = nil, nil
	reached()
}

// stopCopying ends the replay; the store stays open.
func (t *task) stopCopying() {
	if t.copy == nil {
		return
	}
	t.copy = nil
	for i := range t.sub.Stores {
		t.env.cfg.Reader.Remove(t.sub.Stores[i].Changelog, t.id.Partition)
	}
}

func (t *task) measureCopy() {
	var lag, pos int64
	for i, p := range t.copy.position {
		pos += p
		if t.copy.end[i] < 0 {
			lag = -1
		} else if lag >= 0 {
			lag += max(0, t.copy.end[i]-p)
		}
	}
	t.stats.copyLag.Store(lag)
	t.stats.position.Store(pos)
}
