package query

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

const windowsFile = `
- {name: in, from: {topic: in}, steps: [branch: [{name: all}]]}
- {name: a, from: {stream: in, branch: all}, steps: [count: {store: tumbling, window: {tumbling: 10ms, retention: 1s}}, to: {topic: o, value: int}]}
- {name: b, from: {stream: in, branch: all}, steps: [count: {store: hopping, window: {hopping: 10ms, every: 5ms, retention: 1s}}, to: {topic: o, value: int}]}
- {name: c, from: {stream: in, branch: all}, steps: [count: {store: sliding, window: {sliding: 10ms, retention: 1s}}, to: {topic: o, value: int}]}
- {name: d, from: {stream: in, branch: all}, steps: [count: {store: sessions, window: {session: 10ms, retention: 1s}}, to: {topic: o, value: int}]}
- {name: e, from: {stream: in, branch: all}, steps: [join: {stream: in, branch: all, within: 1s, store: joined, value: value + other}, to: o]}
- {name: f, from: {stream: in, branch: all}, steps: [dedupe: {within: 1s, store: passed}, to: o]}
- {name: g, from: {stream: in, branch: all}, steps: [count: {store: short, window: {tumbling: 10ms}}, to: {topic: o, value: int}]}
`

type nothing struct{}

func (nothing) Emit(*kgo.Record) {}

// newWindows is a handler of stores with windows that were filled as tasks fill them.
func newWindows(t *testing.T) *Handler {
	t.Helper()
	f := yamlnode.Parse("t.yaml", []byte(windowsFile), nil)
	top := topology.Parse("app", f.Root())
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	e, err := state.NewEngine(state.Config{Dir: "state", FS: vfs.NewMem(), BallastBytes: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	sub := top.Subtopologies[0]
	var specs []state.StoreSpec
	for i, s := range sub.Stores {
		specs = append(specs, state.StoreSpec{Name: s.Name, TopicID: [16]byte{byte(i + 1)}})
	}
	db, err := e.Open("0_0", specs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	var stores []topology.Store
	for _, s := range sub.Stores {
		stores = append(stores, db.Store(s.Name))
	}
	p, err := sub.NewProcessor(stores, nothing{})
	if err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for i, at := range []int64{1, 4, 12, 18, 33} {
		for _, key := range []string{"k", "long"} {
			if key == "long" && at == 12 {
				continue
			}
			records = append(records, &kgo.Record{Topic: "in", Offset: int64(i), Key: []byte(key), Value: []byte("v"), Timestamp: time.UnixMilli(at)})
		}
	}
	if err := p.Process(0, records); err != nil {
		t.Fatal(err)
	}
	if err := db.Apply(db.Freeze(), make([]int64, len(specs))); err != nil {
		t.Fatal(err)
	}
	return NewHandler(Config{Instance: &instance{role: tasks.Active, db: db}, Group: &group{}, Topology: top, Logger: slog.New(slog.DiscardHandler)})
}

// Rows of windows are shown by key and window, those of a key, of a range of keys, and of a range of time.
func TestWindows(t *testing.T) {
	h := newWindows(t)
	const key = "&key=k&partition=0"
	const all = "&partition=0"
	for _, c := range []struct{ store, q, want string }{
		{"tumbling", key, "k@0/10=2 k@10/20=2 k@30/40=1"},
		{"tumbling", all, "k@0/10=2 long@0/10=2 k@10/20=2 long@10/20=1 k@30/40=1 long@30/40=1"},
		{"tumbling", key + "&window_from=1&window_to=30", "k@10/20=2"},
		{"tumbling", all + "&window_from=10&window_to=31", "k@10/20=2 long@10/20=1 k@30/40=1 long@30/40=1"},
		{"tumbling", all + "&window_from=1970-01-01T00:00:00.03Z", "k@30/40=1 long@30/40=1"},
		{"tumbling", all + "&prefix=l&window_to=1", "long@0/10=2"},
		{"tumbling", all + "&from=l", "long@0/10=2 long@10/20=1 long@30/40=1"},
		{"tumbling", key + "&window_from=100&window_to=200", "no_key"},
		{"tumbling", "&key=none&partition=0", "no_key"},
		{"hopping", key, "k@0/10=2 k@5/15=1 k@10/20=2 k@15/25=1 k@25/35=1 k@30/40=1"},
		{"hopping", key + "&window_from=5&window_to=15", "k@5/15=1 k@10/20=2"},
		{"sliding", key + "&window_from=20", "k@23/33=1"},
		{"sessions", key, "k@1/18=4 k@33/33=1"},
		{"sessions", all, "k@1/18=4 k@33/33=1 long@1/4=2 long@18/18=1 long@33/33=1"},
		{"sessions", all + "&window_from=2&window_to=30", "long@18/18=1"},
		{"sessions", key + "&window_from=2", "k@33/33=1"},
		{"short", key, "k@30/40=1"},
		{"joined-this", key, "k=v k=v k=v k=v k=v"},
		{"joined-this", all + "&prefix=l", "long=v long=v long=v long=v"},
		{"passed", all, "bad_request"},
		{"joined-this", all + "&window_from=1", "bad_request"},
		{"tumbling", all + "&window_from=yesterday", "bad_request"},
		{"tumbling", key + "&prefix=k", "bad_request"},
	} {
		for _, limit := range []int{100, 1, 2} {
			if got := readAll(t, h, c.store, c.q, limit); got != c.want {
				t.Errorf("%s%s by %d: %s, want %s", c.store, c.q, limit, got, c.want)
			}
		}
	}
	_, stores, _ := ask[Stores](t, h, Path)
	i := slices.IndexFunc(stores.Stores, func(s StoreInfo) bool { return s.Name == "hopping" })
	if i < 0 || stores.Stores[i].Window != "hopping 10ms every 5ms" {
		t.Errorf("stores: %+v", stores)
	}
}

// readAll reads page by page. It returns the rows, or the code of a failure.
func readAll(t *testing.T, h *Handler, store, q string, limit int) string {
	t.Helper()
	var got []string
	after := ""
	for more := true; more; {
		code, raw, _ := ask[json.RawMessage](t, h, fmt.Sprintf("%s/%s?limit=%d%s%s", Path, store, limit, q, after))
		var r Range
		var f Failure
		if err := errors.Join(json.Unmarshal(raw, &r), json.Unmarshal(raw, &f)); err != nil {
			t.Fatal(err)
		}
		if code != 200 {
			return string(f.Code)
		}
		if len(r.Rows) > limit {
			t.Errorf("%s%s: %d rows, limit %d", store, q, len(r.Rows), limit)
		}
		for _, row := range r.Rows {
			text := strings.Trim(string(row.Key), `"`)
			if row.Window != nil {
				text += fmt.Sprintf("@%d/%d", row.Start, row.End)
			}
			got = append(got, text+"="+strings.Trim(string(row.Value), `"`))
		}
		more, after = r.More, "&after="+url.QueryEscape(base64.StdEncoding.EncodeToString(r.Next))
	}
	return strings.Join(got, " ")
}
