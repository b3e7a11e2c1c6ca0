package query

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology"
)

// scan answers for a range of one partition.
func (h *Handler) scan(store *topology.StoreSpec, task assign.TaskID, q url.Values, stale bool) (any, *Failure) {
	if task.Partition < 0 {
		return nil, h.failure(CodeBadRequest, "write key=KEY for one key, or partition=P for the keys of a partition")
	}
	from, to, err := bounds(store, q)
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
	answer := &Range{Origin: h.origin(store, task, view), Rows: []RangeRow{}}
	it, err := view.AppliedRange(store.Name, from, to)
	if err != nil {
		return nil, h.unreadable(task, err)
	}
	size := 0
	for it.Next() {
		if answer.More = len(answer.Rows) == limit || size >= maxRowBytes; answer.More {
			break
		}
		size += len(it.Key()) + len(it.Value())
		row, err := rowOf(store, it.Key(), it.Value())
		if err != nil {
			_ = it.Close() // the row is what is wrong
			return nil, h.failure(CodeBroken, "%v", err)
		}
		answer.Rows = append(answer.Rows, RangeRow{Row: row, Raw: bytes.Clone(it.Key())})
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return nil, h.unreadable(task, err)
	}
	return answer, nil
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
	if text := q.Get("after"); text != "" {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, nil, errors.New("after: want a raw key in base64")
		}
		if next := append(raw, 0); bytes.Compare(next, from) > 0 {
			from = next
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
