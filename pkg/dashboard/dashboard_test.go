package dashboard

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology"
)

// group is what Kafka tells, and what it was asked and told.
type group struct {
	mu       sync.Mutex
	statuses []control.Status
	err      error
	reads    int
	marks    []control.Mark
	cancels  []string
}

func (g *group) Read(context.Context) ([]control.Status, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	return g.statuses, g.err
}

func (g *group) PutMark(_ context.Context, m control.Mark) error {
	g.marks = append(g.marks, m)
	return g.err
}

func (g *group) Cancel(_ context.Context, instance string, _ assign.Incarnation) error {
	g.cancels = append(g.cancels, instance)
	return g.err
}

func run(n int64) assign.Incarnation { return assign.Incarnation{StartMs: n, Random: 7} }

func newGroup() *group {
	now := time.Now()
	return &group{statuses: []control.Status{
		{Instance: "a", State: control.Starting, Seen: now.Add(-time.Minute)}, // older than a's own word
		{
			Instance: "b", Incarnation: run(2), State: control.Draining, Seen: now, Generation: 4, DeadlineMs: 99, Active: []string{"0_1"}, Lag: map[string]int64{"0_1": 5},
			Counts: control.Counts{DeadLettered: 3}, Rates: control.Rates{In: 10}, FailedTasks: 1, Failed: []control.Failure{{Task: "0_1", Error: "disk", Failures: 2}},
			Handovers: []control.Handover{{Task: "0_1", From: "c", Generation: 2, AtMs: 1000, GapMs: 20}},
		},
		{Instance: "c", State: control.Drained, Left: control.LeftDrained, Seen: now.Add(-time.Minute), Handovers: []control.Handover{{Task: "0_0", From: "b", AtMs: 500}}},
		{Instance: "d", State: control.Running, Seen: now.Add(-2 * time.Minute)},
		{Instance: "e", State: control.Running, Seen: now.Add(-2 * time.Hour)},
	}}
}

func serve(t *testing.T, g *group, orders Orders) *httptest.Server {
	t.Helper()
	d := New(Config{
		App: "words", Version: "v1", Group: g, Orders: orders, Logger: slog.New(slog.DiscardHandler),
		Topology: topology.Graph{Topics: []topology.GraphNode{{ID: "t0", Label: "lines"}}},
		Self: func() control.Status {
			return control.Status{
				Instance: "a", Incarnation: run(1), State: control.Running, Generation: 5, Active: []string{"0_0"},
				Learning: []control.Learning{{Task: "0_1", Lag: 40}}, Behind: map[string]int64{"0_1": 100},
				Handovers: []control.Handover{{Task: "0_0", From: "c", Generation: 5, AtMs: 2000, GapMs: 30}},
			}
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/api/", d.API())
	mux.Handle("/", d.Pages())
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func TestOverview(t *testing.T) {
	s := serve(t, newGroup(), nil)
	var o Overview
	get(t, s.URL+"/api/v1/overview", &o)
	if o.App != "words" || o.ServedBy != "a" || o.Version != "v1" || o.Actions || o.Note != "" || o.Generation != 5 || len(o.Tasks) != 2 {
		t.Errorf("%+v", o)
	}
	if len(o.Instances) != 2 || o.Instances[0].State != control.Running || o.Instances[0].Behind["0_1"] != 100 || o.Instances[0].Incarnation != run(1).String() {
		t.Errorf("a: %+v", o.Instances)
	}
	if b := o.Instances[1]; b.DeadlineMs != 99 || b.Lag["0_1"] != 5 || b.Counts.DeadLettered != 3 || b.Rates.In != 10 || b.SeenMs == 0 {
		t.Errorf("b: %+v", b)
	}
	if h := o.Handovers; len(h) != 3 || h[0].To != "a" || h[1].To != "b" || h[1].From != "c" || h[2].To != "c" {
		t.Errorf("handovers, the newest first: %+v", h)
	}
	if len(o.Failed) != 1 || o.Failed[0].Instance != "b" || o.Failed[0].Error != "disk" || o.FailedAll != 1 {
		t.Errorf("failed: %+v", o.Failed)
	}
	if g := o.Gone; len(g) != 2 || g[0].ID != "c" || g[0].Why != "drained" || g[1].ID != "d" || g[1].Why != "silent" {
		t.Errorf("gone: %+v", g)
	}
	var graph topology.Graph
	get(t, s.URL+"/api/v1/topology", &graph)
	if len(graph.Topics) != 1 || graph.Topics[0].Label != "lines" {
		t.Errorf("%+v", graph)
	}
}

// Without Kafka the instance shows itself, and says why nobody else is there.
func TestOverviewWithoutKafka(t *testing.T) {
	s := serve(t, &group{err: errors.New("no answer")}, nil)
	var o Overview
	get(t, s.URL+"/api/v1/overview", &o)
	if len(o.Instances) != 1 || !strings.Contains(o.Note, "no answer") || o.Failed == nil || o.Handovers == nil || o.Gone == nil {
		t.Errorf("%+v", o)
	}
}

// However many look, Kafka is asked no more often.
func TestManyLook(t *testing.T) {
	g := newGroup()
	s := serve(t, g, nil)
	start := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			var o Overview
			get(t, s.URL+"/api/v1/overview", &o)
		})
	}
	all.Wait()
	if most := 1 + int(time.Since(start)/freshFor); g.reads > most {
		t.Errorf("%d reads in %s", g.reads, time.Since(start))
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/overview", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip") // set by hand, so it is not undone
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var o Overview
	if err := json.NewDecoder(z).Decode(&o); err != nil || o.App != "words" {
		t.Errorf("compressed: %v", err)
	}
}

func post(t *testing.T, url, kind, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func TestOrders(t *testing.T) {
	g := newGroup()
	s := serve(t, g, g)
	const kind = "application/json"
	a, b := `"instance":"a","incarnation":"`+run(1).String()+`"`, `"instance":"b","incarnation":"`+run(2).String()+`"`
	for _, c := range []struct {
		path, kind, body string
		code             int
		says             string
	}{
		{"leave", kind, "{" + a + "}", http.StatusAccepted, ""},
		{"leave", kind, "{" + a + `,"timeout":"none"}`, http.StatusAccepted, ""},
		{"leave", kind, "{" + a + `,"timeout":"10m"}`, http.StatusAccepted, ""},
		{"cancel", kind, "{" + b + "}", http.StatusAccepted, ""},
		{"leave", kind, "{" + a + `,"timeout":"soon"}`, http.StatusBadRequest, "10m"},
		{"leave", kind, "{" + a + `,"timeout":"-1s"}`, http.StatusBadRequest, "10m"},
		{"leave", kind, `{"instance":"b","incarnation":"` + run(1).String() + `"}`, http.StatusConflict, "started anew"},
		{"leave", kind, `{"instance":"c"}`, http.StatusConflict, "gone"},
		{"leave", kind, `{"instance":"d"}`, http.StatusConflict, "gone"},
		{"leave", kind, `{"instance":"x"}`, http.StatusNotFound, "no instance"},
		{"leave", kind, "{}", http.StatusNotFound, "no instance"},
		{"leave", kind, "", http.StatusBadRequest, "cannot be read"},
		{"leave", kind, "{" + a + `,"force":true}`, http.StatusBadRequest, "force"},
		{"leave", kind, `{"instance":"` + strings.Repeat("x", maxOrder) + `"}`, http.StatusRequestEntityTooLarge, "too long"},
		{"leave", "text/plain", "{" + a + "}", http.StatusUnsupportedMediaType, "json"}, // what a form of another page can send
		{"stop", kind, "{" + a + "}", http.StatusNotFound, ""},
	} {
		code, answer := post(t, s.URL+"/api/v1/"+c.path, c.kind, c.body)
		if code != c.code || !strings.Contains(answer, c.says) {
			t.Errorf("%s %.80s: %d %s, want %d", c.path, c.body, code, answer, c.code)
		}
	}
	if len(g.marks) != 3 || len(g.cancels) != 1 || g.cancels[0] != "b" {
		t.Fatalf("%d marks, cancels of %v", len(g.marks), g.cancels)
	}
	if m := g.marks[0]; m.Instance != "a" || m.Incarnation != run(1) || m.DeadlineMs != 0 || m.By != "the dashboard of a, from 127.0.0.1" {
		t.Errorf("%+v", m)
	}
	if g.marks[1].DeadlineMs != control.NoDeadline || g.marks[2].DeadlineMs != g.marks[2].AtMs+600_000 {
		t.Errorf("deadlines %d, %d", g.marks[1].DeadlineMs, g.marks[2].DeadlineMs)
	}
	g.err = errors.New("Kafka does not answer")
	if code, answer := post(t, s.URL+"/api/v1/cancel", kind, "{"+b+"}"); code != http.StatusServiceUnavailable || !strings.Contains(answer, "does not answer") {
		t.Errorf("%d %s", code, answer)
	}
}

// One that only shows takes no orders.
func TestReadOnly(t *testing.T) {
	g := newGroup()
	s := serve(t, g, nil)
	for _, path := range []string{"leave", "cancel"} {
		code, answer := post(t, s.URL+"/api/v1/"+path, "application/json", `{"instance":"a","incarnation":"`+run(1).String()+`"}`)
		if code != http.StatusForbidden || !strings.Contains(answer, "admin.allow_actions") || len(g.marks)+len(g.cancels) > 0 {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
}

// The pages keep the policy that they are served under: no inline scripts and styles, and nothing from elsewhere.
func TestPages(t *testing.T) {
	s := serve(t, newGroup(), nil)
	inline := regexp.MustCompile(`(?i)<script(?:>|[^>]*>[^<]+)|<style|\sstyle=|\son[a-z]+=|javascript:|https?://`)
	err := fs.WalkDir(web, "web", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := web.ReadFile(path)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "") // a name, not an address
		if found := inline.FindString(text); found != "" {
			t.Errorf("%s has %q", path, found)
		}
		if strings.HasSuffix(path, ".js") && regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`).MatchString(text) {
			t.Errorf("%s makes markup or code of text", path)
		}
		resp, err := http.Get(s.URL + strings.TrimSuffix(strings.TrimPrefix(path, "web"), "index.html"))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/web/", "/nothing", "/../dashboard.go", "/.."} {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK && resp.Request.URL.Path != "/" {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if code, _ := post(t, s.URL+"/", "text/plain", ""); code != http.StatusNotFound {
		t.Errorf("a POST to a page: %d", code)
	}
}
