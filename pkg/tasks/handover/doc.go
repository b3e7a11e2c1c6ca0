// Package handover is the pure core of an instance: for every task, what the instance may do with it
// under its present lease, and what it claims when it joins the next round.
//
// A [Machine] takes plans, losses of the group and the outcomes of commits and fetches, and answers with
// a [Phase] per task. It starts nothing and waits for nothing: the task manager reconciles what runs with
// these phases, and the random simulation drives the same machine against a model of Kafka's coordinator.
//
// The rules, in the order in which a task changes hands:
//
//  1. A task whose learner is ready is ordered to be released by its owner and taken by the learner in one
//     plan. Both orders carry the same release identity (assign.ReleaseID).
//  2. The owner stops the task, flushes, and commits its offsets with a [Token] of that identity in the
//     commit's metadata. The commit names the lease; the broker refuses it under any other generation.
//  3. The taker polls the committed offset until it sees the token of exactly this identity.
//  4. An order that is repeated keeps its identity. An owner that is told again looks at the committed offset
//     before it commits: its token there, or a commit that names this release as the last one (every ordinary
//     commit names the release by which the task last changed hands), means released.
//  5. An owner that was told to release never runs the task again from memory: told `own`, it opens it anew.
//  6. While a commit is on its way, and after one without an answer, nothing more is committed for the task under
//     the same lease, and if it failed it is not opened: the request may still arrive.
package handover
