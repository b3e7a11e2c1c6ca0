package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Handler takes what the tail of the topic delivers. The functions are called one at a time, must not
// block, and are called again with what they already know when the tail has to start anew.
type Handler struct {
	Mark   func(Mark)
	Cancel func(instance string, inc assign.Incarnation) // a mark was taken back
	Hello  func(Hello)                                   // only while tailing: never one from before Run
}

const (
	tailWait   = time.Second // bound on one long poll; a record comes at once
	retryFirst = 100 * time.Millisecond
	retryMax   = 5 * time.Second
)

// Run delivers the marks in force and then tails the topic until ctx ends. It returns nil then; whatever
// Kafka answers in between, it tries again.
func (b *Bus) Run(ctx context.Context, h Handler) error {
	var c *cursor
	retry, failing := retryFirst, false
	for ctx.Err() == nil {
		var err error
		if c == nil {
			c, err = b.catchUp(ctx, h)
		} else {
			err = b.follow(ctx, c, h)
		}
		if err == nil {
			if failing {
				b.log.Info("the control topic can be read again")
			}
			retry, failing = retryFirst, false
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errGone) {
			c = nil
		}
		if !failing {
			b.log.Warn("the control topic cannot be read: leave marks do not get here until it can", "error", err)
		}
		failing = true
		if sleep(ctx, retry) != nil {
			break
		}
		retry = min(2*retry, retryMax)
	}
	return nil
}

// catchUp reads the topic to its present end and delivers only the last word on every mark, so that
// nobody follows one that was taken back long ago.
func (b *Bus) catchUp(ctx context.Context, h Handler) (*cursor, error) {
	c, end, err := b.cursorFromStart(ctx, ordersPartition)
	if err != nil {
		return nil, err
	}
	records, err := c.readTo(ctx, end)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		b.deliver(r, Handler{Mark: h.Mark, Cancel: h.Cancel})
	}
	return c, nil
}

func (b *Bus) follow(ctx context.Context, c *cursor, h Handler) error {
	records, err := c.fetch(ctx, tailWait)
	for _, r := range records {
		b.deliver(r, h)
	}
	return err
}

// readTo returns the last record of every key before the offset end, in order of key.
func (c *cursor) readTo(ctx context.Context, end int64) ([]*kgo.Record, error) {
	latest := make(map[string]*kgo.Record)
	for c.next < end {
		records, err := c.fetch(ctx, tailWait)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			latest[string(r.Key)] = r
		}
	}
	return slices.SortedFunc(maps.Values(latest), func(a, b *kgo.Record) int { return strings.Compare(string(a.Key), string(b.Key)) }), nil
}

func (b *Bus) deliver(r *kgo.Record, h Handler) {
	kind, instance, err := splitKey(r.Key)
	if err != nil {
		b.skip(r, err)
		return
	}
	switch {
	case kind == kindMark && r.Value == nil:
		if inc, ok := tombstoneFor(r); ok && h.Cancel != nil {
			h.Cancel(instance, inc)
		} else if !ok {
			b.skip(r, errors.New("a removed mark that does not say for which incarnation: cancel by streamworker leave --cancel"))
		}
	case kind == kindMark:
		m, err := decodeMark(r, instance)
		if err != nil {
			b.skip(r, err)
		} else if h.Mark != nil {
			h.Mark(m)
		}
	case kind == kindHello && r.Value != nil:
		if h.Hello == nil {
			return
		}
		hello, err := decodeHello(r, instance)
		if err != nil {
			b.skip(r, err)
			return
		}
		h.Hello(hello)
	}
}
