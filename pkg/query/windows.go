package query

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/window"
)

// selection is which rows of a partition are asked for.
type selection struct {
	store         *topology.StoreSpec
	first, behind []byte // rows, in order of their bytes; nil: no bound
	// The rest is for stores whose rows are not named by their key alone.
	key            []byte // the only one; nil: all
	from, to       []byte // keys, in order of their bytes; nil: no bound
	earliest, late int64  // windows begin at the first or behind it, and before the second, in ms since the epoch
}

// selected reads a question for a range.
func selected(store *topology.StoreSpec, key []byte, q url.Values) (*selection, error) {
	s := &selection{store: store, key: key, late: math.MaxInt64}
	from, to, err := bounds(store, q)
	if err != nil {
		return nil, err
	}
	if key != nil && (from != nil || to != nil) {
		return nil, errors.New("key excludes from, to and prefix")
	}
	for name, at := range map[string]*int64{"window_from": &s.earliest, "window_to": &s.late} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		if store.Window == nil {
			return nil, fmt.Errorf("%s: store %s has no windows", name, store.Name)
		}
		if *at, err = parseTime(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case store.Window != nil:
		s.first, s.behind = store.Window.Rows(key, s.earliest, s.late)
		s.from, s.to = from, to
	case store.Layout == topology.Buffer:
		s.first, s.behind = window.BufferedRows(key)
		s.from, s.to = from, to
	default:
		s.first, s.behind = from, to
	}
	if text := q.Get("after"); text != "" {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("after: want a raw key in base64")
		}
		if next := append(raw, 0); bytes.Compare(next, s.first) > 0 {
			s.first = next
		}
	}
	return s, nil
}

// parseTime reads a time: ms since the epoch, or as in RFC 3339.
func parseTime(text string) (int64, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 {
		return ms, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.UnixMilli() >= 0 {
		return at.UnixMilli(), nil
	}
	return 0, fmt.Errorf("%q: want ms since the epoch, or a time like 2024-01-31T12:00:00Z", text)
}

// has tells whether a row within the bounds is one that is asked for.
func (s *selection) has(row []byte) bool {
	if s.store.Window == nil && s.store.Layout != topology.Buffer {
		return true
	}
	key, w, ok := s.store.RowKey(row)
	return ok && (s.key == nil || bytes.Equal(key, s.key)) && bytes.Compare(key, s.from) >= 0 && (s.to == nil || bytes.Compare(key, s.to) < 0) &&
		w.Start >= s.earliest && w.Start < s.late
}

// readOneByOne fills a page with the windows of a key where rows are in order of time. It asks for each window that may be there,
// instead of reading the rows of all keys.
func (s *selection) readOneByOne(view tasks.View, p *page) error {
	row, ok, err := view.Applied(s.store.Name, window.ClockKey)
	if err != nil || !ok {
		return err
	}
	win := *s.store.Window
	clock, ok := window.ParseClock(row)
	if !ok {
		return rowError{fmt.Errorf("store %s: its stream time cannot be read", s.store.Name)}
	}
	if s.earliest > clock.Time {
		return nil
	}
	// Windows that are older have expired, if they are not deleted yet.
	start := max(s.earliest, win.Expiry(clock.Time)+1-win.Size, 0) + win.Advance - 1
	start -= start % win.Advance
	var last []byte
	for ; start < s.late && start <= clock.Time; start += win.Advance {
		row := win.AppendRow(nil, s.key, window.Bounds{Start: start, End: win.End(start)})
		if bytes.Compare(row, s.first) < 0 {
			continue // it was on a page before
		}
		if p.full(last) {
			return nil
		}
		p.looked++
		stored, ok, err := view.Applied(s.store.Name, row)
		if err != nil {
			return err
		}
		if ok {
			if err := p.add(s.store, row, stored); err != nil {
				return rowError{err}
			}
		}
		last = row
	}
	return nil
}
