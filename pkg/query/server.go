package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Path is what the paths of all questions begin with.
const Path = "/api/v1/stores"

// Bounds of one range.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	maxRowBytes  = 1 << 20 // keys and values of one answer; it ends behind the row that gets there
	maxScans     = 4       // at one time
)

// Instance is whose tasks are read.
type Instance interface {
	ID() string
	View(t assign.TaskID, stale bool) (tasks.View, error)
	Partitions(subtopology int32) int32 // 0: not known yet
}

// Config is what a Handler needs.
type Config struct {
	Instance Instance
	Group    Group // who runs what
	Topology *topology.Topology
	Logger   *slog.Logger
}

// Handler answers questions below Path.
type Handler struct {
	cfg   Config
	log   *slog.Logger
	where *directory
	scans chan struct{} // one slot for each scan
}

// NewHandler returns a handler; it does nothing on its own.
func NewHandler(cfg Config) *Handler {
	return &Handler{
		cfg: cfg, log: cfg.Logger.With("component", "query"), where: &directory{group: cfg.Group}, scans: make(chan struct{}, maxScans),
	}
}

// ServeHTTP answers one question.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, Path+"/")
	var answer any
	var f *Failure
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		h.write(w, http.StatusMethodNotAllowed, h.failure(CodeBadRequest, "stores are only read: GET"))
		return
	case !below:
		answer = h.stores()
	default:
		answer, f = h.ask(name, r.URL.Query())
	}
	if f != nil {
		h.fail(w, r, f)
		return
	}
	h.write(w, http.StatusOK, answer)
}

func (h *Handler) stores() *Stores {
	s := &Stores{Instance: h.cfg.Instance.ID(), Stores: []StoreInfo{}}
	for _, sub := range h.cfg.Topology.Subtopologies {
		for _, store := range sub.Stores {
			info := StoreInfo{
				Name: store.Name, Key: store.Key.String(), Value: store.Value.String(), Partitions: h.cfg.Instance.Partitions(sub.ID),
			}
			if store.Window != nil {
				info.Window = store.Window.String()
			}
			s.Stores = append(s.Stores, info)
		}
	}
	return s
}

// ask answers a question for a key or a range of a store.
func (h *Handler) ask(name string, q url.Values) (any, *Failure) {
	sub, store := h.cfg.Topology.Store(name)
	if store == nil {
		f := h.failure(CodeUnknownStore, "there is no store %q", name)
		for _, s := range h.stores().Stores {
			f.Stores = append(f.Stores, s.Name)
		}
		if f.Stores == nil {
			f.Message += "; the application has none"
		} else {
			f.Message += "; there are " + strings.Join(f.Stores, ", ")
		}
		return nil, f
	}
	if store.Layout == topology.Index || store.Layout == topology.Timed {
		return nil, h.failure(CodeBadRequest, "store %s has no values, but what its step has to remember of others (%s)", name, store.Definition())
	}
	for parameter := range q {
		switch parameter {
		case "key", "partition", "from", "to", "prefix", "window_from", "window_to", "after", "limit", "stale":
		default:
			return nil, h.failure(CodeBadRequest, "there is no parameter %q", parameter)
		}
	}
	partitions := h.cfg.Instance.Partitions(sub.ID)
	if partitions == 0 {
		return nil, h.failure(CodeMoving, "the instance is still starting")
	}
	task := assign.TaskID{Subtopology: sub.ID, Partition: -1}
	if text := q.Get("partition"); text != "" {
		p, err := strconv.ParseInt(text, 10, 32)
		if err != nil || p < 0 || int32(p) >= partitions {
			return nil, h.failure(CodeBadRequest, "partition=%s: store %s has partitions 0 to %d", text, name, partitions-1)
		}
		task.Partition = int32(p)
	}
	stale := q.Get("stale") == "true"
	if !q.Has("key") {
		return h.scan(store, task, nil, q, stale)
	}
	key, err := store.Key.ParseText(q.Get("key"))
	if err != nil {
		return nil, h.failure(CodeBadRequest, "key: %v", err)
	}
	if task.Partition < 0 {
		task.Partition = tasks.PartitionOf(key, partitions)
	}
	if store.Window != nil || store.Layout == topology.Buffer {
		return h.scan(store, task, key, q, stale)
	}
	return h.get(store, task, key, stale)
}

func (h *Handler) get(store *topology.StoreSpec, task assign.TaskID, key []byte, stale bool) (any, *Failure) {
	view, err := h.cfg.Instance.View(task, stale)
	if err != nil {
		return nil, h.unreadable(task, err)
	}
	stored, ok, err := view.Applied(store.Name, key)
	if err != nil {
		return nil, h.unreadable(task, err)
	}
	if !ok {
		return nil, h.nothing(store, task)
	}
	row, err := rowOf(store, key, stored)
	if err != nil {
		return nil, h.failure(CodeBroken, "%v", err)
	}
	return &Answer{Origin: h.origin(store, task, view), Row: row}, nil
}

// nothing says that a key is not there.
func (h *Handler) nothing(store *topology.StoreSpec, task assign.TaskID) *Failure {
	f := h.failure(CodeNoKey, "nothing is stored for this key in %s (task %s, which has it by Kafka's default partitioner unless you named a partition)", store.Name, task)
	f.Task = task.String()
	return f
}

func (h *Handler) origin(store *topology.StoreSpec, task assign.TaskID, view tasks.View) Origin {
	return Origin{Store: store.Name, Instance: h.cfg.Instance.ID(), Task: task.String(), Role: string(view.Role), Lag: view.Lag}
}

// rowOf shows a row of a store, without the window.
func rowOf(store *topology.StoreSpec, key, stored []byte) (row Row, err error) {
	var value []byte
	if row.Timestamp, value, err = store.Split(stored); err != nil {
		return row, err
	}
	if row.Value, err = store.Value.ToJSON(bytes.Clone(value)); err != nil {
		return row, fmt.Errorf("a value of store %s: %w", store.Name, err)
	}
	if row.Key, err = store.Key.ToJSON(bytes.Clone(key)); err != nil {
		return row, fmt.Errorf("a key of store %s: %w", store.Name, err)
	}
	return row, nil
}

// unreadable says why a task cannot be read here.
func (h *Handler) unreadable(task assign.TaskID, err error) *Failure {
	code := CodeBroken
	switch {
	case errors.Is(err, tasks.ErrNotHere):
		code = CodeElsewhere // fail finds out where
	case errors.Is(err, tasks.ErrMoving), errors.Is(err, state.ErrClosed):
		code = CodeMoving
	}
	f := h.failure(code, "%v", err)
	f.Task = task.String()
	return f
}

func (h *Handler) failure(code Code, format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...), Code: code, Instance: h.cfg.Instance.ID()}
}

var statusOf = map[Code]int{
	CodeBadRequest: http.StatusBadRequest, CodeUnknownStore: http.StatusNotFound, CodeNoKey: http.StatusNotFound,
	CodeElsewhere: http.StatusTemporaryRedirect, CodeMoving: http.StatusServiceUnavailable, CodeBusy: http.StatusServiceUnavailable,
	CodeBroken: http.StatusInternalServerError,
}

// fail writes a failure; of a task that is elsewhere, where it is.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, f *Failure) {
	code := statusOf[f.Code]
	if f.Code == CodeElsewhere {
		stale := r.URL.Query().Get("stale") == "true"
		owner, err := h.where.find(r.Context(), f.Task, f.Instance, stale)
		switch {
		case owner == nil && err != nil:
			f.Code, f.Message = CodeMoving, fmt.Sprintf("task %s is not on this instance, and the others' statuses cannot be read: %v", f.Task, err)
			code = http.StatusServiceUnavailable
		case owner == nil:
			f.Code, f.Message = CodeMoving, fmt.Sprintf("nobody runs task %s at the moment", f.Task)
			code = http.StatusServiceUnavailable
		case owner.Address == "":
			f.Owner, f.Message = owner.Instance, fmt.Sprintf("task %s is on %s, which serves no admin address: set admin.listen there", f.Task, owner.Instance)
			code = http.StatusMisdirectedRequest
		default:
			f.Owner, f.Message = owner.Instance, fmt.Sprintf("task %s is on %s", f.Task, owner.Instance)
			w.Header().Set("Location", owner.Address+r.URL.RequestURI())
		}
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	h.write(w, code, f)
}

func (h *Handler) write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		h.log.Debug("an answer was not taken", "error", err)
	}
}
