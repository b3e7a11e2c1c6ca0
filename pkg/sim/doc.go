// Package sim runs random histories of a whole group: the assignor, the leases and the handover that
// production uses, against models of what surrounds them, and a naive checker after every step.
//
// Real: pkg/group/assign plans every round, and a handover.Machine per process decides what that process
// does. Modelled:
//
//   - Kafka's classic group coordinator: its four states, generations, member ids, joins on changed bytes
//     only, a rebalance timeout that removes members that miss the join, sessions that end, LeaveGroup;
//   - the committed offsets: a commit names member and generation and is accepted, or refused with
//     UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS; requests arrive in any order, late or
//     never, and answers get lost;
//   - the transaction coordinator: producer epochs, with one for each transaction or without (transaction
//     version 2 and 1), InitProducerID, timeouts, EndTxn that is answered before it is seen. Offsets are unstable
//     and changelogs cannot be read further until the markers are there, which come one by one in any order;
//   - one changelog per task, of which a process may hold a copy, in memory and on a disk that outlives it;
//   - the work of a process, as simple as it can be: a task is a position per input partition and a state
//     that counts the inputs it has seen (see run);
//   - under exactly once, which half of the histories have, the transaction that all tasks of a process write in:
//     how it is cut off, committed under the lease, tried again under the next one, and aborted with everything
//     that the process has in memory (see transact).
//
// A history begins with a group that comes to rest, goes through faults and events (see fault), and must
// come to rest again when these end. Each history draws the kinds of faults it has, so that some are
// dense in one kind. The same seed gives the same history.
//
// A test that fails prints the seed and the trace; STREAMWORKER_SIM_SEED=N go test -run TestSimHistories -v plays that
// history again, and STREAMWORKER_SIM_HISTORIES=N plays that many.
//
// What the checker demands is in check.go (of every state), plan.go (of every plan) and rest.go (in the end).
// That it would notice is shown by [Rule]: each rule of the handover can be switched off in the modelled
// part of a process, and then histories fail.
//
// Not modelled: under at least once, changelog writes of a process that was removed from the group and has not
// heard of it. There is no fence for them but the process's own clock, which here always strikes before such a
// write. (Under exactly once such a process writes as long as its transaction lasts.) Nor partitions that are refused
// by themselves.
package sim
