// Package telemetry turns an instance's counts, snapshots and events into Prometheus metrics and OpenTelemetry
// traces. Their names are part of the product: testdata/metrics and docs/metrics.md list them.
package telemetry
