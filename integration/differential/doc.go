// Package differential runs topologies through Kafka Streams and through streamworker, on the same generated records, and
// compares what they write.
//
// A case is a file in testdata: a topology in both languages, and what its input is made of. Input comes from fixed seeds: with
// late and out-of-order records, equal timestamps, null keys and null values. Kafka Streams' side is the Java program in streams,
// which runs TopologyTestDriver (one JVM for all cases); ours is topologytest, as in streamworker test --input. Compared are
// the sequences of updates of each topic and the final tables.
//
// What differs on purpose is in testdata/deviations: records that show it, and what each side writes. docs/semantics.md lists
// these, with reasons. Generated input keeps clear of them.
//
// The tests need a JDK 17 or newer and Maven, no Kafka. DIFFERENTIAL_SEEDS=N runs N seeds of each case instead of a few.
package differential
