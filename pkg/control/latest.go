package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Latest keeps the last status of every instance between reads, and so reads only what is new. Its methods may be
// called from several goroutines.
type Latest struct {
	bus *Bus
	my  chan state // holds one state, or nobody may touch it
}

type state struct {
	cursor   *cursor // nil: nothing was read yet
	statuses map[string]Status
}

// forgetAfter is how long an instance that is gone is still told of.
const forgetAfter = time.Hour

// NewLatest reads nothing yet.
func NewLatest(b *Bus) *Latest {
	l := &Latest{bus: b, my: make(chan state, 1)}
	l.my <- state{statuses: make(map[string]Status)}
	return l
}

// Read returns the last status of every instance, in order of instance id, as ReadStatuses does, but without those
// that have been gone for an hour. With an error come those that were read before.
func (l *Latest) Read(ctx context.Context) ([]Status, error) {
	var s state
	select {
	case s = <-l.my:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { l.my <- s }()
	err := l.advance(ctx, &s)
	if errors.Is(err, errGone) { // deleted, or another topic
		s.cursor = nil
		err = l.advance(ctx, &s)
	}
	now := time.Now()
	maps.DeleteFunc(s.statuses, func(_ string, one Status) bool { return now.Sub(one.Seen) > forgetAfter })
	return slices.SortedFunc(maps.Values(s.statuses), func(a, b Status) int { return cmp.Compare(a.Instance, b.Instance) }), err
}

// advance reads from where the last read ended to the present end.
func (l *Latest) advance(ctx context.Context, s *state) error {
	from, end, err := l.bus.cursorFromStart(ctx, statusPartition)
	if err != nil {
		return err
	}
	if s.cursor == nil || s.cursor.topicID != from.topicID || s.cursor.next < from.next || s.cursor.next > end {
		s.cursor, s.statuses = from, make(map[string]Status)
	}
	records, err := s.cursor.readTo(ctx, end)
	for _, r := range records {
		kind, instance, errKey := splitKey(r.Key)
		if errKey != nil || kind != kindStatus {
			continue
		}
		if r.Value == nil {
			delete(s.statuses, instance)
		} else if one, err := decodeStatus(r, instance); err != nil {
			l.bus.skip(r, err)
		} else {
			s.statuses[instance] = one
		}
	}
	return err
}
