package query

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// instance has one task, 0_0 of two, with the stores counts and numbers.
type instance struct {
	role     tasks.Role
	lag      int64
	err      error
	starting bool
	db       *state.DB
}

func (i *instance) ID() string { return "a" }
func (i *instance) Partitions(int32) int32 {
	if i.starting {
		return 0
	}
	return 2
}
func (i *instance) View(t assign.TaskID, stale bool) (tasks.View, error) {
	switch {
	case i.err != nil:
		return tasks.View{}, i.err
	case t.Partition != 0 || i.role != tasks.Active && !stale:
		return tasks.View{}, tasks.ErrNotHere
	}
	return tasks.NewView(i.role, i.lag, i.db), nil
}

type group struct {
	statuses []control.Status
	err      error
	reads    int
}

func (g *group) Read(context.Context) ([]control.Status, error) {
	g.reads++
	return g.statuses, g.err
}

const file = `
- name: a
  from: {topic: in, key: string}
  steps: [count: {store: counts}]
- name: b
  from: {topic: in2, key: string, value: string}
  steps: [max: {store: more}]
`

// newHandler has "k-00" to "k-24", counted so many times, as far as they are of partition 0 or not.
func newHandler(t *testing.T) (*Handler, *instance, *group) {
	t.Helper()
	f := yamlnode.Parse("t.yaml", []byte(file), nil)
	top := topology.Parse("app", f.Root())
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	e, err := state.NewEngine(state.Config{Dir: "state", FS: vfs.NewMem(), BallastBytes: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	db, err := e.Open("0_0", []state.StoreSpec{{Name: "counts", TopicID: [16]byte{1}}, {Name: "more", TopicID: [16]byte{2}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), e.Close()); err != nil && !errors.Is(err, state.ErrClosed) {
			t.Error(err)
		}
	})
	for i := range 25 {
		db.Store("counts").Put(fmt.Appendf(nil, "k-%02d", i), []byte{0, 0, 0, 0, 0, 0, 3, byte(i), 0, 0, 0, 0, 0, 0, 0, byte(i)})
	}
	if err := db.Apply(db.Freeze(), []int64{25, 0}); err != nil {
		t.Fatal(err)
	}
	in, g := &instance{role: tasks.Active, db: db}, &group{}
	return NewHandler(Config{Instance: in, Group: g, Topology: top, Logger: slog.New(slog.DiscardHandler)}), in, g
}

// ask returns the code, the body as a value and the Location.
func ask[T any](t *testing.T, h http.Handler, target string) (code int, body T, location string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v: %s", target, err, w.Body)
	}
	return w.Code, body, w.Header().Get("Location")
}

// keyOf is one of the keys of a partition.
func keyOf(t *testing.T, partition int32) string {
	t.Helper()
	for i := range 25 {
		if key := fmt.Sprintf("k-%02d", i); i > 0 && tasks.PartitionOf([]byte(key), 2) == partition {
			return key
		}
	}
	t.Fatal("no key")
	return ""
}

func TestKey(t *testing.T) {
	h, in, _ := newHandler(t)
	code, stores, _ := ask[Stores](t, h, "/api/v1/stores")
	if code != 200 || stores.Instance != "a" || len(stores.Stores) != 2 || stores.Stores[0] != (StoreInfo{"counts", "string", "int", "", 2}) {
		t.Errorf("%d %+v", code, stores)
	}
	key := keyOf(t, 0)
	code, a, _ := ask[Answer](t, h, "/api/v1/stores/counts?key="+key)
	if want := strings.TrimLeft(key[2:], "0"); code != 200 || string(a.Key) != `"`+key+`"` || string(a.Value) != want || a.Timestamp < 768 ||
		a.Origin != (Origin{"counts", "a", "0_0", "active", 0}) {
		t.Errorf("%d %+v", code, a)
	}
	in.role, in.lag = tasks.Standby, 7
	if code, a, _ := ask[Answer](t, h, "/api/v1/stores/counts?stale=true&key="+key); code != 200 || a.Role != "standby" || a.Lag != 7 {
		t.Errorf("a copy: %d %+v", code, a)
	}
}

func TestFailures(t *testing.T) {
	h, in, g := newHandler(t)
	here, elsewhere := keyOf(t, 0), keyOf(t, 1)
	b := control.Status{Instance: "b", Active: []string{"0_1"}, Seen: time.Now(), Address: "https://b.example.com:9464"}
	c := control.Status{Instance: "c", Standby: []string{"0_1"}, Seen: time.Now(), Address: "http://c:1"}
	old := control.Status{Instance: "old", Active: []string{"0_1"}, Seen: time.Now().Add(-time.Hour), Address: "http://old:1"}
	for _, one := range []struct {
		query  string
		change func()
		status int
		code   Code
		says   string
	}{
		{"count?key=x", nil, 404, CodeUnknownStore, "there are counts, more"},
		{"counts?key=x", nil, 404, CodeNoKey, ""},
		{"counts", nil, 400, CodeBadRequest, "partition=P"},
		{"counts?kee=x", nil, 400, CodeBadRequest, `no parameter "kee"`},
		{"counts?key=x&partition=2", nil, 400, CodeBadRequest, "0 to 1"},
		{"counts?partition=0&limit=0", nil, 400, CodeBadRequest, "1 to 1000"},
		{"counts?partition=0&limit=x", nil, 400, CodeBadRequest, "1 to 1000"},
		{"counts?partition=0&prefix=a&from=b", nil, 400, CodeBadRequest, "prefix excludes"},
		{"counts?partition=0&after=%25", nil, 400, CodeBadRequest, "base64"},
		{"counts?key=" + elsewhere, func() { g.statuses = []control.Status{old, b, c} }, 307, CodeElsewhere, "task 0_1 is on b"},
		{"counts?stale=true&key=" + elsewhere, func() { g.statuses = []control.Status{old, c} }, 307, CodeElsewhere, "task 0_1 is on c"},
		{"counts?key=" + elsewhere, func() { g.statuses = []control.Status{old, c} }, 503, CodeMoving, "nobody runs task 0_1"},
		{"counts?key=" + elsewhere, func() { g.statuses = []control.Status{{Instance: "b", Active: b.Active, Seen: b.Seen}} }, 421, CodeElsewhere, "admin.listen"},
		{"counts?key=" + elsewhere, func() { g.statuses, g.err = nil, errors.New("no Kafka") }, 503, CodeMoving, "no Kafka"},
		{"counts?key=" + here, func() { in.err = tasks.ErrMoving }, 503, CodeMoving, ""},
		{"counts?key=" + here, func() { in.err = errors.New("a bad disk") }, 500, CodeBroken, "a bad disk"},
		{"counts?key=" + here, func() { in.starting = true }, 503, CodeMoving, "starting"},
		{"counts?key=" + here, func() { _ = in.db.Close() }, 503, CodeMoving, "closed"},
		{"counts?partition=0", func() { _ = in.db.Close() }, 503, CodeMoving, "closed"},
	} {
		in.err, in.starting, g.statuses, g.err, h.where.at = nil, false, nil, nil, time.Time{}
		if one.change != nil {
			one.change()
		}
		target := "/api/v1/stores/" + one.query
		code, f, location := ask[Failure](t, h, target)
		if one.code == CodeNoKey && tasks.PartitionOf([]byte("x"), 2) != 0 {
			code, f, location = ask[Failure](t, h, target+"&partition=0")
		}
		if code != one.status || f.Code != one.code || !strings.Contains(f.Message, one.says) || f.Instance != "a" {
			t.Errorf("%s: %d %+v, want %d %s %q", one.query, code, f, one.status, one.code, one.says)
		}
		if code == 307 && (f.Owner == "" || !strings.HasSuffix(location, target) || !strings.Contains(location, "://"+f.Owner)) {
			t.Errorf("%s: to %s at %s", one.query, f.Owner, location)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/stores/counts", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
}

// However many ask for tasks that are elsewhere, Kafka is asked once in a while.
func TestKafkaIsAskedSeldom(t *testing.T) {
	h, _, g := newHandler(t)
	h.where.at = time.Now().Add(time.Hour) // fresh for longer than this test may take
	for range 50 {
		ask[Failure](t, h, "/api/v1/stores/counts?key="+keyOf(t, 1))
	}
	if g.reads != 0 {
		t.Errorf("Kafka was asked %d times", g.reads)
	}
}

func TestRange(t *testing.T) {
	h, in, _ := newHandler(t)
	list := func(q string) (keys []string, more bool, last []byte) {
		t.Helper()
		code, r, _ := ask[Range](t, h, "/api/v1/stores/counts?partition=0&"+q)
		if code != 200 || r.Task != "0_0" || r.Rows == nil {
			t.Errorf("%s: %d %+v", q, code, r)
		}
		for _, row := range r.Rows {
			keys, last = append(keys, string(row.Raw)), row.Raw
		}
		return keys, r.More, last
	}
	for q, want := range map[string]string{
		"from=k-03&to=k-06":         "k-03 k-04 k-05",
		"prefix=k-2":                "k-20 k-21 k-22 k-23 k-24",
		"prefix=z":                  "",
		"from=k-23":                 "k-23 k-24",
		"to=k-02":                   "k-00 k-01",
		"prefix=k-1&limit=2":        "k-10 k-11 and more",
		"from=k-05&to=k-05":         "",
		"prefix=k-2&after=ay0yMg==": "k-23 k-24",
		"prefix=k-2&after=YQ==":     "k-20 k-21 k-22 k-23 k-24",
	} {
		keys, more, _ := list(q)
		if more {
			keys = append(keys, "and more")
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	var all []string
	q, pages := "limit=7", 0
	for more := true; more; pages++ {
		var keys []string
		var last []byte
		keys, more, last = list(q)
		all, q = append(all, keys...), "limit=7&after="+url.QueryEscape(base64.StdEncoding.EncodeToString(last))
	}
	if len(all) != 25 || pages != 4 || !slices.IsSorted(all) {
		t.Errorf("%d keys on %d pages: %v", len(all), pages, all)
	}

	for range maxScans {
		h.scans <- struct{}{}
	}
	if code, f, _ := ask[Failure](t, h, "/api/v1/stores/counts?partition=0"); code != 503 || f.Code != CodeBusy {
		t.Errorf("%d %+v", code, f)
	}
	for range maxScans {
		<-h.scans
	}
	// An answer ends behind the row that makes it too large.
	large := make([]byte, 8+maxRowBytes/2)
	for i := range 4 {
		in.db.Store("more").Put([]byte{'k', byte('0' + i)}, large)
	}
	if err := in.db.Apply(in.db.Freeze(), []int64{25, 4}); err != nil {
		t.Fatal(err)
	}
	if code, r, _ := ask[Range](t, h, "/api/v1/stores/more?partition=0"); code != 200 || len(r.Rows) != 2 || !r.More {
		t.Errorf("large values: %d, %d rows, more %v", code, len(r.Rows), r.More)
	}
	in.db.Store("counts").Put([]byte("k-99"), []byte("no count"))
	if err := in.db.Apply(in.db.Freeze(), []int64{26, 4}); err != nil {
		t.Fatal(err)
	}
	if code, f, _ := ask[Failure](t, h, "/api/v1/stores/counts?partition=0&from=k-99"); code != 500 || f.Code != CodeBroken || !strings.Contains(f.Message, "store counts") {
		t.Errorf("a value that is no count: %d %+v", code, f)
	}
}
