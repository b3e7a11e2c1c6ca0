// Package streamstest has typed inputs and outputs for tests of topologies in Go, on a topologytest.Driver.
package streamstest
