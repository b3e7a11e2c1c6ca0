// Package state keeps the state of tasks: one Pebble database per task, with all its stores and their
// checkpoint, under budgets that an Engine shares among all tasks of the instance.
//
// # Writes
//
// A Store's writes go to rows in memory. Freeze cuts them into Changes, which the caller first sends to
// the changelogs and commits together with the input offsets; only then Apply makes them one Pebble
// batch, with the checkpoint (topic id, position, time) of each store inside. So what is on disk is
// always committed, and never apart from the positions that say how much of the changelogs it holds.
// Pebble's own log is off: the changelog is the log. After a crash the state is that of some earlier
// Apply, and replay goes on from its checkpoint; nothing is wiped.
//
// # Reads
//
// The rows are the write buffer and a cache in one table: a read that hits costs one look-up and no
// allocation. Rows that Pebble does not hold yet (written, or frozen and not applied) stay; others are
// evicted under a budget that all stores share. Absent keys are known too, as rows, by a filter, or
// because the table is known to hold every key. Scan merges the written rows, which a store keeps in
// order from its first scan on, with what Pebble holds.
//
// # Goroutines
//
// Rows belong to the goroutine that runs the task; Apply may run on another one at the same time, and
// Close at any time. Calls on a closed DB return ErrClosed.
//
// # Changelogs
//
// Reader tails changelogs with Fetch requests of its own. It reports progress by position rather than
// by records, so that compacted gaps, control records and aborted transactions at the tail all end.
package state
