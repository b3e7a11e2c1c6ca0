package instance

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/telemetry"
)

// collected is a collector of traces.
type collected struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*spans.Span
}

func newCollector(t *testing.T) *collected {
	c := &collected{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &got)
		}
		if err != nil {
			t.Errorf("not OTLP: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range got.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				c.spans = append(c.spans, ss.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collected) named(name string) (out []*spans.Span) {
	for _, s := range c.spans {
		if s.GetName() == name {
			out = append(out, s)
		}
	}
	return out
}

// Each task that a drained instance gave has one trace with both sides in it.
func TestDrainIsTraced(t *testing.T) { underBoth(t, 4, testDrainIsTraced) }

func testDrainIsTraced(t *testing.T, b *bench) {
	c := newCollector(t)
	traced := func(id string) (*worker, *telemetry.Traces) {
		traces, err := telemetry.StartTraces(t.Context(), telemetry.TraceConfig{App: b.app, Instance: id, Endpoint: c.URL, CommitEvery: 1, Logger: b.log})
		if err != nil {
			t.Fatal(err)
		}
		b.events = traces.Events()
		return b.start(id), traces
	}
	w1, t1 := traced("a")
	b.awaitActive(w1, 4)
	b.send(1000, 100)
	b.check()
	w2, t2 := traced("b")
	b.awaitActive(w2, 2)
	if err := w1.Leave(t.Context(), leave.Never, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(w1); err == nil {
		t.Fatal("a left without saying why")
	}
	b.awaitActive(w2, 4)
	b.send(1000, 100)
	b.check()
	w2.Stop(config.Release)
	if err := b.end(w2); err != nil {
		t.Fatal(err)
	}
	for _, traces := range []*telemetry.Traces{t1, t2} {
		if err := traces.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gave, took := c.named("handover release"), c.named("handover take")
	if len(gave) < 4 {
		t.Fatalf("%d releases", len(gave))
	}
	for _, g := range gave {
		found := false
		for _, k := range took {
			if bytes.Equal(g.GetTraceId(), k.GetTraceId()) && bytes.Equal(g.GetLinks()[0].GetSpanId(), k.GetSpanId()) && bytes.Equal(k.GetLinks()[0].GetSpanId(), g.GetSpanId()) {
				found = true
				if k.GetStatus().GetCode() == spans.Status_STATUS_CODE_ERROR {
					t.Errorf("a take failed: %s", k.GetStatus().GetMessage())
				}
			}
		}
		if !found {
			t.Errorf("no take belongs to the release %s", g)
		}
	}
	for _, name := range []string{"handover gap", "restore", "commit"} {
		if len(c.named(name)) == 0 {
			t.Errorf("no span %q", name)
		}
	}
}
