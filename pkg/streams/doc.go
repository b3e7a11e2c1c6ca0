// Package streams says in Go what a topology computes, with types.
//
// A Builder takes streams and tables: From reads a topic; steps filter, map, group, aggregate, join, and write. The result is a
// topology like those that are written as YAML, with functions where these have expressions: it is the same steps that run,
// and everything that is true of them holds here. So is everything around it: brokers, guarantee, state and learners stay in
// the configuration file, which has no streams then. Package app makes a binary of it.
//
//	func build(b *streams.Builder) {
//		lines := streams.From(b, "lines", streams.String, streams.String)
//		words := streams.FlatMapValues(lines, streams.String, func(r streams.Record[string, string]) ([]string, error) {
//			return strings.Fields(strings.ToLower(r.Value)), nil
//		})
//		counts := streams.GroupBy(words, streams.String, func(r streams.Record[string, string]) (string, error) { return r.Value, nil })
//		counts.Count("counts").To("counts")
//	}
//
// # Functions
//
// They are called once for each record, by one goroutine for each task; they keep nothing between two calls, except in stores.
// An error, or a panic, makes the record a bad one, with which the source's OnError deals. Functions of several tasks run at the
// same time, so what they share must bear that.
//
// # What identifies a topology
//
// Instances of a group have to run the same topology. What functions do is not known: it is the names of topics, streams,
// stores and steps, formats, and their order that count. A change of a function alone is not noticed, and rolls through a live
// group; what is in stores then comes from both. Name makes a step's name say that it has changed.
//
// # Custom processors
//
// Process takes a step that sees every record, keeps what it likes in stores of its own, has timers by stream time and by the wall
// clock, and hands on what it likes. What it writes to stores is committed, restored and handed over like the rest, and taken back
// with a bad record.
package streams
