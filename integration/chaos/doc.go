// Package chaos runs an application under load while instances and brokers are killed, stopped, cut off and restarted
// by a schedule that a seed repeats, and then counts: what was lost, what was doubled, and whether the output, the
// changelogs and the local stores agree with what was sent.
//
// The schedule (Plan) and the check of what the instances logged (Check) are pure and have tests of their own. The
// run itself, TestChaos, needs the build tag integration, Linux, and for some faults the rights of root.
//
//	CHAOS_SEED       the seed, printed by every run; default: a new one
//	CHAOS_TIME       how long faults go on in each run (of planned ones a third of it); default 45s
//	CHAOS_GUARANTEE  exactly_once or at_least_once alone
//	CHAOS_KIND       faults or planned alone
//	CHAOS_RATE       records a second, default 1500
//	CHAOS_BROKERS    default 3; on 1 all of Kafka is away when it dies
//	CHAOS_LOGS       a directory for the logs of the instances and brokers
package chaos
