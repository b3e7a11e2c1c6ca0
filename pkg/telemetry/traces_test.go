package telemetry

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is the traces of one instance, and what they have sent.
type recorder struct {
	*Traces
	tasks.Events
	out *tracetest.InMemoryExporter
}

func record(t *testing.T, app string, commitEvery int) recorder {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	traces := newTraces(app, commitEvery, sdktrace.WithSyncer(out))
	t.Cleanup(func() { _ = traces.Shutdown(t.Context()) })
	return recorder{traces, traces.Events(), out}
}

func (r recorder) span(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	spans := r.out.GetSpans()
	i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no span %q among %d", name, len(spans))
	}
	return spans[i]
}

var (
	task    = assign.TaskID{Subtopology: 0, Partition: 3}
	release = assign.ReleaseID{Generation: 7, Owner: "words-worker-2-b2f1"}
)

// Two processes that exchange nothing but the release make one trace.
func TestHandoverIsOneTrace(t *testing.T) {
	owner, taker, stranger := record(t, "words", 0), record(t, "words", 0), record(t, "other", 0)

	taker.PhaseChanged(tasks.PhaseInfo{Task: task, From: handover.Learning, To: handover.Taking, Generation: 7, Release: release})
	owner.Released(tasks.ReleaseInfo{Task: task, Release: release, Lease: handover.Lease{Generation: 7}, Took: 6 * time.Millisecond})
	taker.PhaseChanged(tasks.PhaseInfo{Task: task, From: handover.Taking, To: handover.Opening})
	taker.Restored(tasks.RestoreInfo{Task: task, Records: 12, Took: 2 * time.Millisecond, Local: true})
	taker.PhaseChanged(tasks.PhaseInfo{Task: task, From: handover.Opening, To: handover.Running})
	taker.TakenOver(tasks.TakeoverInfo{Task: task, Release: release, Gap: 25 * time.Millisecond, Slowest: 30 * time.Millisecond, Records: 90})
	stranger.Released(tasks.ReleaseInfo{Task: task, Release: release})

	gave, took := owner.span(t, spanRelease), taker.span(t, spanTake)
	if gave.SpanContext.TraceID() != took.SpanContext.TraceID() {
		t.Errorf("release in trace %s, take in %s", gave.SpanContext.TraceID(), took.SpanContext.TraceID())
	}
	for _, pair := range [][2]tracetest.SpanStub{{gave, took}, {took, gave}} {
		if l := pair[0].Links; len(l) != 1 || l[0].SpanContext.SpanID() != pair[1].SpanContext.SpanID() || l[0].SpanContext.TraceID() != pair[1].SpanContext.TraceID() {
			t.Errorf("%s links to %v, not to %s", pair[0].Name, l, pair[1].Name)
		}
	}
	if d := gave.EndTime.Sub(gave.StartTime); d != 6*time.Millisecond {
		t.Errorf("the release took %s", d)
	}
	if took.Status.Code == codes.Error {
		t.Errorf("the take: %+v", took.Status)
	}
	for name, long := range map[string]time.Duration{spanRestore: 2 * time.Millisecond, spanGap: 25 * time.Millisecond} {
		s := taker.span(t, name)
		if s.Parent.SpanID() != took.SpanContext.SpanID() || s.EndTime.Sub(s.StartTime) != long {
			t.Errorf("%s: parent %s, %s long", name, s.Parent.SpanID(), s.EndTime.Sub(s.StartTime))
		}
	}
	if other := stranger.span(t, spanRelease); other.SpanContext.TraceID() == gave.SpanContext.TraceID() {
		t.Error("another application's release is in the same trace")
	}
}

func TestTakeThatComesToNothing(t *testing.T) {
	r := record(t, "words", 0)
	r.PhaseChanged(tasks.PhaseInfo{Task: task, To: handover.Taking, Release: release})
	r.PhaseChanged(tasks.PhaseInfo{Task: task, From: handover.Taking, To: handover.Idle})
	if s := r.span(t, spanTake); s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, "idle") {
		t.Errorf("%+v", s.Status)
	}
	r.Restored(tasks.RestoreInfo{Task: task, Took: time.Second})
	if s := r.span(t, spanRestore); s.Parent.IsValid() || s.SpanContext.TraceID() == r.span(t, spanTake).SpanContext.TraceID() {
		t.Error("a restore after a failure belongs to no take")
	}
}

func TestCommitsAreSampled(t *testing.T) {
	commits := func(every int) (acknowledged, others int) {
		r := record(t, "words", every)
		for range 10 {
			r.Committed(tasks.CommitInfo{Outcome: handover.Acknowledged, Sent: time.Now(), Took: time.Millisecond})
		}
		r.Committed(tasks.CommitInfo{Outcome: handover.Declined})
		r.Committed(tasks.CommitInfo{Outcome: handover.Unknown})
		for _, s := range r.out.GetSpans() {
			switch {
			case slices.Contains(s.Attributes, attrOutcome.String("acknowledged")):
				acknowledged++
			case (s.Status.Code == codes.Error) == slices.Contains(s.Attributes, attrOutcome.String("unanswered")):
				others++
			}
		}
		return acknowledged, others
	}
	for every, want := range map[int][2]int{0: {0, 0}, 1: {10, 2}, 5: {2, 2}, 100: {0, 2}} {
		if a, o := commits(every); a != want[0] || o != want[1] {
			t.Errorf("one of %d: %d acknowledged and %d others, want %v", every, a, o, want)
		}
	}
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if k, v, _ := strings.Cut(p, "="); k == name {
				return v, true
			}
		}
		return "", false
	}
}

func TestTracesAreOffByDefault(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		env      func(string) (string, bool)
		want     bool
	}{
		{"", env(), false},
		{"http://localhost:4318", env(), true},
		{"http://localhost:4318", env("OTEL_SDK_DISABLED=true"), false},
		{"http://localhost:4318", env("OTEL_TRACES_EXPORTER=none"), false},
		{"", env("OTEL_TRACES_EXPORTER=otlp"), true},
		{"", env("OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"), true},
		{"", env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4318/v1/traces"), true},
	} {
		if got := (TraceConfig{Endpoint: c.endpoint, Env: c.env}).Wanted(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	_, err := StartTraces(t.Context(), TraceConfig{Env: env("OTEL_EXPORTER_OTLP_PROTOCOL=grpc")})
	if err == nil || !strings.Contains(err.Error(), "4318") {
		t.Errorf("grpc: %v", err)
	}
}

// What a collector gets, and that one that fails costs one line of log.
func TestExport(t *testing.T) {
	paths := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
	}))
	defer collector.Close()
	traces, err := StartTraces(t.Context(), TraceConfig{
		App: "words", Instance: "worker-1", Version: "v1", Endpoint: collector.URL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	traces.Events().Released(tasks.ReleaseInfo{Task: task, Release: release})
	if err := traces.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-paths; got != "POST /v1/traces application/x-protobuf" {
		t.Errorf("got %s", got)
	}

	var log strings.Builder
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	traces, err = StartTraces(t.Context(), TraceConfig{Endpoint: refusing.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		traces.Events().Released(tasks.ReleaseInfo{Task: task, Release: release})
		if err := traces.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := traces.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}
