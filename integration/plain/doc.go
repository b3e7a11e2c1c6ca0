// Package plain has plain consumers, as users of Kafka write them: each copies the records of one topic to another as a
// member of a consumer group, and commits what it has written. The upgrade tests replace them by streamworker in a live group.
//
// They are programs, one for each client: kgo, sarama (a module of its own, so that the product does not depend on it) and
// Java. Arguments: brokers, group, input topic, output topic, assignment strategy. At each assignment they print a line
// "assigned PARTITIONS GENERATION"; at the end of their standard input they finish, commit, leave the group and exit with 0.
package plain
