// Package reset takes an application back to where it has read nothing: its offsets, its internal topics and the local
// state of one host. A [Plan] says what there is to delete; [Resetter.Run] deletes it. Both refuse while an instance is alive.
//
// The group comes first: the broker refuses to delete it while it has members, so an instance that has joined since the plan was
// made stops the reset before anything is gone. From then on to the last step no instance may start, as offsets
// and state do not fit each other. A plan made after an interruption has what is left.
package reset
