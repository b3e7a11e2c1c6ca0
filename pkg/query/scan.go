package query

import (
	"bytes"
	"errors"
	"net/url"
	"strconv"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Bounds of the work for one page: rows that are looked at, though they are none of those that are asked for.
const maxLooked = 100_000

// page is a part of the rows of a partition, as far as bounds allow.
type page struct {
	*Range
	limit, size, looked int
}

// full notes where to go on if there is no room for a row behind last.
func (p *page) full(last []byte) bool {
	if len(p.Rows) < p.limit && p.size < maxRowBytes && p.looked < maxLooked {
		return false
	}
	p.More, p.Next = true, bytes.Clone(last)
	return true
}

// add shows a row.
func (p *page) add(store *topology.StoreSpec, raw, stored []byte) error {
	p.size += len(raw) + len(stored)
	key, bounds, _ := store.RowKey(raw)
	row, err := rowOf(store, key, stored)
	if err != nil {
		return err
	}
	if store.Window != nil {
		row.Window = &Window{bounds.Start, bounds.End}
	}
	p.Rows = append(p.Rows, RangeRow{Row: row, Raw: bytes.Clone(raw)})
	return nil
}

// scan answers for a range of one partition, or for the rows of a key, where it may have several.
func (h *Handler) scan(store *topology.StoreSpec, task assign.TaskID, key []byte, q url.Values, stale bool) (any, *Failure) {
	if task.Partition < 0 {
		return nil, h.failure(CodeBadRequest, "write key=KEY for one key, or partition=P for the keys of a partition")
	}
	s, err := selected(store, key, q)
	if err != nil {
		return nil, h.failure(CodeBadRequest, "%v", err)
	}
	limit := DefaultLimit
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > MaxLimit {
			return nil, h.failure(CodeBadRequest, "limit=%s: want 1 to %d", text, MaxLimit)
		}
	}
	select {
	case h.scans <- struct{}{}:
		defer func() { <-h.scans }()
	default:
		return nil, h.failure(CodeBusy, "%d ranges are being read already", maxScans)
	}
	view, err := h.cfg.Instance.View(task, stale)
	if err != nil {
		return nil, h.unreadable(task, err)
	}
	p := &page{Range: &Range{Origin: h.origin(store, task, view), Rows: []RangeRow{}}, limit: limit}
	read := s.read
	if key != nil && store.Window != nil && !store.Window.ByKey() {
		read = s.readOneByOne
	}
	if err := read(view, p); err != nil {
		var bad rowError
		if errors.As(err, &bad) {
			return nil, h.failure(CodeBroken, "%v", err)
		}
		return nil, h.unreadable(task, err)
	}
	if key != nil && len(p.Rows) == 0 && !p.More && !q.Has("after") {
		return nil, h.nothing(store, task)
	}
	return p.Range, nil
}

// rowError tells of a row that cannot be shown.
type rowError struct{ error }

// read fills a page with the rows of the selection, in order of their bytes.
func (s *selection) read(view tasks.View, p *page) error {
	it, err := view.AppliedRange(s.store.Name, s.first, s.behind)
	if err != nil {
		return err
	}
	var last []byte
	for it.Next() {
		if p.full(last) {
			break
		}
		p.looked++
		if s.has(it.Key()) {
			if err := p.add(s.store, it.Key(), it.Value()); err != nil {
				_ = it.Close() // the row is what is wrong
				return rowError{err}
			}
		}
		last = append(last[:0], it.Key()...)
	}
	return errors.Join(it.Err(), it.Close())
}

// bounds are the first key of a range and the first one behind it; nil: no bound.
func bounds(store *topology.StoreSpec, q url.Values) (from, to []byte, err error) {
	if q.Has("prefix") {
		if q.Has("from") || q.Has("to") {
			return nil, nil, errors.New("prefix excludes from and to")
		}
		if store.Key != topology.String && store.Key != topology.Bytes && store.Key != topology.JSON {
			return nil, nil, errors.New("prefix is for keys that are text: use from and to")
		}
		from = []byte(q.Get("prefix"))
		to = behind(from)
	}
	for name, bound := range map[string]*[]byte{"from": &from, "to": &to} {
		if text := q.Get(name); text != "" {
			if *bound, err = store.Key.ParseText(text); err != nil {
				return nil, nil, errors.New(name + ": " + err.Error())
			}
		}
	}
	return from, to, nil
}

// behind is the first key that does not begin with the prefix and follows those that do; nil if there is none.
func behind(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
