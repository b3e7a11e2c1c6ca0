// Package topology turns the streams of a configuration file into what tasks run.
//
// Parse checks a file's streams, compiles their expressions against the types that keys and values have at
// each step, and cuts them into subtopologies; a Processor computes one task of a subtopology.
//
// # Subtopologies
//
// A stream is a chain of steps from one topic. Where an aggregate follows a change of key, the chain is cut: the first
// part writes to the topic <app>-<store>-repartition and a new segment goes on from there, so that equal keys meet in one
// task. Segments that read the same topic form one subtopology, and so do those that follow each other or that a step joins.
// Subtopologies are numbered by their first segment, streams in the file's order, then tables: a stream that is added at the end leaves
// the numbers of the other streams alone.
//
// # Flows
//
// A flow is where records can be taken up: the end of a segment, or a branch. Other segments follow it, and steps with a second
// input are tapped into it (flow.go). An assembly starts the segments of a subtopology for a processor from their ends, each once,
// however many lead to it. A message of a table is a change of a row: the new value, and the old one where something
// behind wants to know it (segment.old).
//
// # State
//
// A step keeps all that it knows in stores, stream time too, so that it goes where they go and is taken back with a bad record. A
// plain store has a row per key. The rows of windows (window.Spec), of joined streams (window.Place), of
// subscriptions by foreign key (foreign.go) and of expiring rows (ttl.go) have keys of their own, which are read in order; StoreSpec.RowKey
// tells which of them hold values. What steps have in memory beside that are lower bounds, which save look-ups.
//
// Files: steps*.go read the steps and check them, from.go where records come from; the others compute. folding.go is what an
// aggregate makes of values, with windows (windowing.go, window_*.go) and without (aggregate.go).
//
// # Bytes
//
//   - string: as it is; not checked to be UTF-8. bytes: as it is.
//   - int and float: 8 bytes, big-endian, as Kafka's LongSerializer and DoubleSerializer write them.
//   - csv, avro, protobuf: see package format. Steps see them as JSON, and in stores and repartition topics they are JSON.
//   - json: whole numbers that fit 64 bits stay whole, other numbers become floats; objects are written with their fields in
//     order of name. The text null is a null.
//   - in a store, and in its changelog: 8 bytes of timestamp (ms since the epoch, big-endian), then the value. The key as it is.
//   - a repartition topic has the formats of key and value at that place; in front of a count the value is empty. Those of tables by
//     group, and by foreign key, carry changes, subscriptions and answers (regroup.go, foreign.go).
//
// Keys are compared by their bytes. What passes through unchanged keeps its bytes.
//
// # Semantics
//
// They are those of Kafka Streams with caching off. Every record at an aggregate gives a result, with the largest timestamp of
// what went into it. An aggregate drops records without key or value and counts them. The first value of a reduce is taken as is; a
// reduce that gives null deletes the entry and writes a null. What follows an aggregate sees its results as a stream of
// records. Headers stay with the record that caused an output.
//
// With emit: commit an aggregate's semantics are those of caching on: each commit gives the last value of each key that has
// changed, without headers. There is no record to stop before then, so Parse refuses steps behind that may fail under
// on_error: fail (infallible.go).
//
// A record whose key or value is not in its format, or for which an expression fails, is dealt with as the source's on_error
// says. It leaves no trace in stores and output, so that it can be processed again or sent in anew. Of a flat_map's elements the
// others still get through, except under on_error: fail; there is one dead letter per source record and segment.
//
// # Expressions
//
// They are written in the language of github.com/expr-lang/expr over key, value, timestamp (ms since the epoch), topic, partition,
// offset and headers (the last value of each name), and acc in a reduce. Behind a repartition topic, topic, partition and offset are
// those of that topic. Null is nil. What is read out of JSON has no type until it is there: it may go wherever its value
// turns out to fit, and a sum of it is a float unless int() is around it.
//
// What is common is evaluated by closures that do just what the library does (native.go), over fields of JSON too (native_json.go).
// Where nothing else of a record's value is looked at, it is checked as a whole, but only these fields are decoded (fields.go).
package topology
