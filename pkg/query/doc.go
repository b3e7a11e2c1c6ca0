// Package query reads stores of a running application: what is committed for a key, or for a range of keys.
//
// Handler answers on the admin side of an instance for the tasks that are on it, and tells where others are. Client asks
// the instances of a group, follows what they tell, and waits a while for a task that is on the move.
//
// Reads take nothing from processing: they look at what was applied, which is committed (package state), and at no row that is being
// written. So they are behind what is processed by a commit at most, and under exactly once they show nothing that may yet be aborted.
//
// # Over HTTP
//
//	GET /api/v1/stores                              the stores, their formats and partitions
//	GET /api/v1/stores/STORE?key=KEY                one key
//	GET /api/v1/stores/STORE?partition=P&from=A&to=B&limit=N    keys of one partition, in order of their bytes
//
// Keys are written as text in the store's format. prefix= is instead of from= and to=; after= is the base64 of a key, and goes on
// behind it; stale=true takes the answer of a copy, too.
//
// An instance that does not run the task answers 307 with the address of the one that does, 503 if nobody runs it at the
// moment. Every failure is a Failure in JSON.
package query
