package telemetry

import (
	"context"
	crypto "crypto/rand"
	"crypto/sha256"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// moveTraceID is the same on both instances that a task moves between.
func moveTraceID(app string, task assign.TaskID, r assign.ReleaseID) (id trace.TraceID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d %q", app, task, r.Generation, r.Owner))
	copy(id[:], sum[:])
	return id
}

// moveSpanID is that of one side's span in the trace of a move.
func moveSpanID(t trace.TraceID, side string) (id trace.SpanID) {
	sum := sha256.Sum256(append(t[:], side...))
	copy(id[:], sum[:])
	return id
}

type idsKey struct{}

type fixedIDs struct {
	trace trace.TraceID
	span  trace.SpanID // zero: any
}

// withIDs gives the next span without a parent these ids.
func withIDs(ctx context.Context, t trace.TraceID, s trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, fixedIDs{t, s})
}

// ids are random, but where the context has some.
type ids struct{}

var _ sdktrace.IDGenerator = ids{}

// NewIDs is called for spans without a parent.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	fixed, _ := ctx.Value(idsKey{}).(fixedIDs)
	if !fixed.trace.IsValid() {
		_, _ = crypto.Read(fixed.trace[:]) // never fails
	}
	if !fixed.span.IsValid() {
		fixed.span = g.NewSpanID(ctx, fixed.trace)
	}
	return fixed.trace, fixed.span
}

// NewSpanID is called for spans with a parent.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = crypto.Read(id[:]) // never fails
	return id
}
