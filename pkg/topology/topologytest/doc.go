// Package topologytest runs a topology in this process, without Kafka, one record at a time.
//
// A Driver has one task of every subtopology, with the Processor and the stores that an instance runs; the stores' databases
// are in memory. Pipe takes a record through all of them, repartition topics and topics that one stream writes and
// another reads included, until nothing is left to do. Nothing happens by itself: the wall clock stands until Advance moves
// it, and after each record there is a commit, unless Config.ManualCommit leaves that to the test. So the same records
// always give the same results, in the same order.
//
// What a driver cannot show: several partitions, so that keys which meet in one task here may be in different ones; what comes
// between two commits under emit: commit, unless commits are made by hand; crashes.
//
// Script is a whole run as one JSON document. The package cases has tests written as YAML, beside a topology.
package topologytest
