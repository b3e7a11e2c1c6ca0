package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// TraceConfig says where spans go. What it leaves open, the standard OTEL_ variables of the environment decide.
type TraceConfig struct {
	App, Instance, Version string

	Endpoint    string // OTLP over HTTP, e.g. http://localhost:4318; "": as the environment says
	CommitEvery int    // one of so many acknowledged commits is traced; 0: none
	Env         func(string) (string, bool)
	Logger      *slog.Logger
}

// Wanted reports whether traces are to be sent: an endpoint is configured here or in the environment, and nothing
// there turns them off.
func (c TraceConfig) Wanted() bool {
	switch exporter := c.env("OTEL_TRACES_EXPORTER"); {
	case c.env("OTEL_SDK_DISABLED") == "true" || exporter == "none":
		return false
	case exporter == "otlp" || c.Endpoint != "":
		return true
	}
	return c.env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || c.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func (c TraceConfig) env(name string) string {
	if c.Env == nil {
		return ""
	}
	v, _ := c.Env(name)
	return v
}

// StartTraces sends spans in the background until Shutdown.
func StartTraces(ctx context.Context, c TraceConfig) (*Traces, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch p := c.env(name); p {
		case "", "http/protobuf":
		default:
			return nil, fmt.Errorf("traces: %s=%s: only http/protobuf is there; set it to that, and the endpoint to the collector's HTTP port, mostly 4318", name, p)
		}
	}
	var opts []otlptracehttp.Option
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("telemetry.traces.endpoint: %w", err)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/traces"
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	res, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", c.App), attribute.String("service.instance.id", c.Instance),
		attribute.String("service.version", c.Version),
	), resource.WithTelemetrySDK(), resource.WithFromEnv()) // the later one counts
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	log := c.Logger.With("component", "traces")
	log.Info("sending traces", "commit_every", c.CommitEvery)
	return newTraces(c.App, c.CommitEvery, sdktrace.WithResource(res),
		sdktrace.WithBatcher(&patientExporter{SpanExporter: exporter, log: log})), nil
}

// patientExporter says once that spans cannot be sent, and once that they can again.
type patientExporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans drops what the collector does not take.
func (e *patientExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch failing := err != nil; {
	case failing && !e.failing.Swap(true):
		e.log.Warn("traces cannot be sent; they are dropped until the collector takes them", "error", err)
	case !failing && e.failing.Swap(false):
		e.log.Info("traces can be sent again")
	}
	return nil
}
