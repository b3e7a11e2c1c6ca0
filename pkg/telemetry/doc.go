// Package telemetry turns an instance's counts, snapshots and events into Prometheus metrics. Their names
// are part of the product: testdata/metrics lists them.
package telemetry
