// Command bench measures streamworker and Kafka Streams side by side, on one Kafka that it starts, and writes figures
// and their ratios to a file. `make bench-peer` runs it; docs/benchmarks.md says what is measured.
//
// Each run is a process of its own, started anew. The two sides take turns, and each pair has them in the other order.
// A run of either side is done when the group's committed offsets have reached the ends of its input, as Kafka's admin
// requests tell; then its results are compared with what was loaded, and a wrong result makes the run fail.
//
// It needs Linux (processor time and memory are read from /proc), a JDK 17 or newer, and Maven.
package main
