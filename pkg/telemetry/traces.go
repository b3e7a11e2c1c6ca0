package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Names of spans and attributes. docs/metrics.md explains them.
const (
	spanRelease = "handover release"
	spanTake    = "handover take"
	spanGap     = "handover gap"
	spanRestore = "restore"
	spanCommit  = "commit"

	attrApp        = attribute.Key("streamworker.app")
	attrTask       = attribute.Key("streamworker.task")
	attrTasks      = attribute.Key("streamworker.tasks") // how many
	attrGeneration = attribute.Key("streamworker.generation")
	attrReleaseGen = attribute.Key("streamworker.release.generation")
	attrReleaser   = attribute.Key("streamworker.release.owner")
	attrRecords    = attribute.Key("streamworker.records")
	attrLocal      = attribute.Key("streamworker.restore.local")
	attrSlowest    = attribute.Key("streamworker.handover.slowest_ms")
	attrOutcome    = attribute.Key("streamworker.commit.outcome")
)

// Traces turn an instance's events into spans. The two instances that a task moves between have no channel for a trace
// context but the release itself, so its identity gives the trace id and the ids of both sides' spans: they are in one
// trace and link to each other, whichever of them is recorded.
type Traces struct {
	provider    *sdktrace.TracerProvider
	tracer      trace.Tracer
	app         string
	commitEvery uint64
	commits     atomic.Uint64

	mu    sync.Mutex
	takes map[assign.TaskID]*take // that have begun here, until their first record
}

type take struct {
	ctx     context.Context
	span    trace.Span
	release assign.ReleaseID
}

// newTraces sends spans to the processor. One of commitEvery acknowledged commits is traced, all others are; 0: none.
func newTraces(app string, commitEvery int, opts ...sdktrace.TracerProviderOption) *Traces {
	provider := sdktrace.NewTracerProvider(append(opts, sdktrace.WithIDGenerator(ids{}))...)
	return &Traces{
		provider: provider, tracer: provider.Tracer("github.com/streamworker/streamworker"), app: app,
		commitEvery: uint64(max(commitEvery, 0)), takes: make(map[assign.TaskID]*take),
	}
}

// Shutdown sends what is left. No event may come after it.
func (t *Traces) Shutdown(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Events are the functions that an instance calls.
func (t *Traces) Events() tasks.Events {
	return tasks.Events{
		PhaseChanged: t.phaseChanged, Restored: t.restored, Released: t.released, TakenOver: t.takenOver, Committed: t.committed,
	}
}

// moving gives a span of a handover its place: in the trace of the release, with a link to the other side.
func (t *Traces) moving(task assign.TaskID, r assign.ReleaseID, side, other string, start time.Time) (context.Context, []trace.SpanStartOption) {
	traceID := moveTraceID(t.app, task, r)
	linked := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: moveSpanID(traceID, other), TraceFlags: trace.FlagsSampled, Remote: true,
	})
	return withIDs(context.Background(), traceID, moveSpanID(traceID, side)), []trace.SpanStartOption{
		trace.WithTimestamp(start), trace.WithLinks(trace.Link{SpanContext: linked}),
		trace.WithAttributes(attrApp.String(t.app), attrTask.String(task.String()),
			attrReleaseGen.Int64(int64(r.Generation)), attrReleaser.String(r.Owner)),
	}
}

func (t *Traces) released(r tasks.ReleaseInfo) {
	now := time.Now()
	ctx, opts := t.moving(r.Task, r.Release, spanRelease, spanTake, now.Add(-r.Took))
	_, span := t.tracer.Start(ctx, spanRelease, append(opts, trace.WithAttributes(attrGeneration.Int64(int64(r.Lease.Generation))))...)
	span.End(trace.WithTimestamp(now))
}

// phaseChanged follows a task from when it is to be taken until it runs, or until it is to do something else.
func (t *Traces) phaseChanged(p tasks.PhaseInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.takes[p.Task]
	switch {
	case p.To == handover.Taking:
		if k != nil {
			k.fail(p.To)
		}
		ctx, opts := t.moving(p.Task, p.Release, spanTake, spanRelease, time.Now())
		ctx, span := t.tracer.Start(ctx, spanTake, append(opts, trace.WithAttributes(attrGeneration.Int64(int64(p.Generation))))...)
		t.takes[p.Task] = &take{ctx: ctx, span: span, release: p.Release}
	case k == nil || p.To == handover.Opening:
	case p.To == handover.Running:
		k.span.End()
	default:
		k.fail(p.To)
		delete(t.takes, p.Task)
	}
}

// fail ends a take that came to nothing; ending a span twice does nothing.
func (k *take) fail(to handover.Phase) {
	if k.span.IsRecording() {
		k.span.SetStatus(codes.Error, "the task did not come to run here: it is "+to.String())
	}
	k.span.End()
}

func (t *Traces) taking(task assign.TaskID) *take {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takes[task]
}

func (t *Traces) restored(r tasks.RestoreInfo) {
	ctx := context.Background()
	if k := t.taking(r.Task); k != nil {
		ctx = k.ctx
	}
	now := time.Now()
	_, span := t.tracer.Start(ctx, spanRestore, trace.WithTimestamp(now.Add(-r.Took)),
		trace.WithAttributes(attrApp.String(t.app), attrTask.String(r.Task.String()), attrRecords.Int64(r.Records), attrLocal.Bool(r.Local)))
	span.End(trace.WithTimestamp(now))
}

// takenOver adds the gap, which began before the take: with the former owner's last record.
func (t *Traces) takenOver(i tasks.TakeoverInfo) {
	ctx := withIDs(context.Background(), moveTraceID(t.app, i.Task, i.Release), [8]byte{})
	t.mu.Lock()
	if k := t.takes[i.Task]; k != nil && k.release == i.Release {
		ctx = k.ctx
		delete(t.takes, i.Task)
	}
	t.mu.Unlock()
	now := time.Now()
	_, span := t.tracer.Start(ctx, spanGap, trace.WithTimestamp(now.Add(-i.Gap)),
		trace.WithAttributes(attrApp.String(t.app), attrTask.String(i.Task.String()),
			attrRecords.Int(i.Records), attrSlowest.Float64(float64(i.Slowest.Microseconds())/1000)))
	span.End(trace.WithTimestamp(now))
}

func (t *Traces) committed(c tasks.CommitInfo) {
	if t.commitEvery == 0 || c.Outcome == handover.Acknowledged && t.commits.Add(1)%t.commitEvery != 0 {
		return
	}
	_, span := t.tracer.Start(context.Background(), spanCommit, trace.WithTimestamp(c.Sent),
		trace.WithAttributes(attrApp.String(t.app), attrTasks.Int(len(c.Tasks)), attrGeneration.Int64(int64(c.Lease.Generation)),
			attrOutcome.String(outcomeName(c.Outcome))))
	if c.Outcome == handover.Unknown { // a refusal is part of every round
		span.SetStatus(codes.Error, "no answer")
	}
	span.End(trace.WithTimestamp(c.Sent.Add(c.Took)))
}
