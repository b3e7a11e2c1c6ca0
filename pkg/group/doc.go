// Package group is the instance's side of the Kafka consumer group: membership, the wire format of
// reports and plans, and the offset requests that are fenced by the membership.
//
// The group uses the classic protocol, protocol type "consumer", dynamic members only. What travels is
// true ConsumerProtocol subscriptions and assignments, so that Kafka's own tools describe the group and
// the broker keeps its offsets; what is ours is in their user data (wire.go). A round works like this:
//
//	every member   Handler.Report -> user data of its subscription -> JoinGroup
//	the leader     all reports -> assign.Assign -> user data of the assignments -> SyncGroup
//	every member   user data of its assignment -> Handler.Plan
//
// A restart under a new member id does not wait for the session of its former self (former.go): measured on
// Apache Kafka 4.4.0, after kill -9 the join of the next process waits at the coordinator some 20 ms after
// its start, and with the other members told to Rejoin it has its plan a few milliseconds later, in one round.
//
// Membership joins, heartbeats and forces rounds by a kgo group client that consumes nothing. Coordinator
// sends what must not hide behind that client: commits and fetches of offsets, LeaveGroup, and heartbeats
// while a join is pending. Files:
//
//	taskset.go     sets of tasks as bytes
//	wire.go        reports and plans as bytes, versioned
//	envelope.go    ConsumerProtocol around them
//	budget.go      size of the record in which Kafka keeps a group, and what to do near its limit
//	balancer.go    the leader's work, and the adapter to kgo
//	upgrade.go     the protocols of plain consumers beside ours
//	membership.go  joining, plans, forced rounds, leaving
//	clock.go       when a member must take itself for expelled
//	watch.go       what runs beside the kgo client: that clock, heartbeats of our own, removal of former members
//	expired.go     that clock for others to ask
//	former.go      the member ids that a restart has to remove
//	config.go      settings, and kgo options made of them
//	coordinator.go, commit.go, fetch.go   requests to the group coordinator
package group
