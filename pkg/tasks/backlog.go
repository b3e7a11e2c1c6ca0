package tasks

import (
	"context"
	"sync/atomic"
	"time"
)

// backlog is what all inboxes together hold. The consumer does not poll while it is too much: one fetch brings whole batches,
// each of which may be more than a task's share, for each of many tasks. A nil backlog counts nothing.
type backlog struct {
	bytes atomic.Int64
	room  chan struct{}
}

const (
	backlogBytes = 16 << 20
	// backlogWait bounds the wait while nothing gets done: what waits is that of tasks which cannot go on then, and others must
	// not stand still.
	backlogWait = 100 * time.Millisecond
)

func newBacklog() *backlog { return &backlog{room: make(chan struct{}, 1)} }

func (b *backlog) add(n int) {
	if b == nil {
		return
	}
	now := b.bytes.Add(int64(n))
	if n < 0 && now <= backlogBytes && now-int64(n) > backlogBytes {
		select {
		case b.room <- struct{}{}:
		default:
		}
	}
}

// await waits until there is room for more, or nothing has been done for a while.
func (b *backlog) await(ctx context.Context) {
	left := b.bytes.Load()
	if left <= backlogBytes {
		return
	}
	tick := time.NewTicker(backlogWait)
	defer tick.Stop()
	for b.bytes.Load() > backlogBytes {
		select {
		case <-b.room:
		case <-tick.C:
			now := b.bytes.Load()
			if now >= left {
				return
			}
			left = now
		case <-ctx.Done():
			return
		}
	}
}
