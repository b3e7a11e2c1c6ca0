// Package scenario runs scenario files against the assignor alone: a group, what happens to it event by
// event, and members that do at once what they are told. No Kafka takes part.
//
// A file is YAML or JSON:
//
//	tasks: [T1, T2, T3]                # or {count: 1000}; a task may be {id: T1, stateful: false, size: 10GiB}
//	policy: {learners: eager, balancing_factor: 2, max_learners: 0, standbys: 0, restore_rate: 100MiB, size: 1GiB}
//	members:                           # the group before the first event
//	  S1: [T1, T2]
//	  S2: {tasks: [T3], capacity: 2, rack: a, labels: {pool: blue}, leader: true, standby: [], learning: [], local: []}
//	events:
//	  - join: S3                       # or [S3, S4], or {S3: {capacity: 2}}
//	  - ready: {S3: [T1]}              # or all
//	  - leave: S2                      # or a list, or {selector: {pool: blue}}
//	  - cancel_leave: S2
//	  - timeout: S2                    # its scale-down timeout
//	  - crash: S1
//	  - settle: true                   # restore until the group is stable; only here time passes
//
// One event is one instant and one round; more rounds follow until the plan stays as it is, and those that
// change nothing are not shown.
package scenario
