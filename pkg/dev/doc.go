// Package dev is the trial run of the command `dev`: a broker (embedded, or a real Kafka), a generator of lines of
// text, several instances in one process, and a check of what they computed. While the stream goes on one instance
// leaves and another one joins.
//
// What is shown of tasks, moves and gaps is what the instances say of themselves, by their statuses and events. The
// counts are checked against the generator's own, which it keeps apart from them.
//
//	config.go     what is asked for
//	app.go        the application that the instances run: the word count, or one's own
//	broker.go     topics on an embedded or a real Kafka, and their end
//	lines.go      the text; generator.go writes it at a rate and counts the words
//	output.go     reads what came out; check.go compares
//	worker.go     one instance; moves.go what it tells of handovers
//	run.go        the course of a run; act.go who leaves and joins; settle.go its end
//	frame.go      the table; screen.go draws it, or prints lines
//	summary.go    the result
package dev
