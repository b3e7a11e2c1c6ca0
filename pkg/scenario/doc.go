// Package scenario runs scenario files against the assignor alone: a group, what happens to it event by
// event, and members that do at once what they are told. No Kafka takes part.
//
// A file is YAML or JSON:
//
//	tasks: [T1, T2, T3]                # or {count: 1000}; a task may be {id: T1, stateful: false, size: 10GiB, changes: 1MiB/s, load: 0.1},
//	                                   # and {count: 1000, sizes: [1GiB, 3GiB]} gives them in turn
//	policy: {learners: eager, balancing_factor: 2, max_learners: 0, standbys: 0, restore_rate: 100MiB, size: 1GiB, changes: 0, load: 0}
//	times: {round: 0s, handover: 0s, pause: 0s, session: 0s, restart: 0s}
//	crashes: {every: 24h, seed: 1}
//	members:                           # the group before the first event
//	  S1: [T1, T2]
//	  S2: {tasks: [T3], capacity: 2, rack: a, labels: {pool: blue}, leader: true, standby: [], learning: [], local: []}
//	  S3..9: {tasks: all}              # many at once: all tasks, or those listed, are dealt to them in turn
//	events:
//	  - join: S10                      # or [S10, S11], or {S10: {capacity: 2}}
//	  - ready: {S10: [T1]}             # or all
//	  - leave: S2                      # or a list, or {selector: {pool: blue}}, as in all events below
//	  - cancel_leave: S2
//	  - timeout: S2                    # its scale-down timeout
//	  - crash: S1
//	  - restart: S1                    # it is away for times.restart and comes back with its state
//	  - settle: true                   # let time pass until the group is stable
//	  - wait: 10m                      # let that much time pass
//
// One event is one instant and one round; more rounds follow until the plan stays as it is, and those that
// change nothing are not shown.
//
// # Time
//
// Time passes while the scenario settles or waits, and while a round is under way. This is the model:
//
//   - A member restores restore_rate bytes a second, less the share that its tasks need (load, divided by the
//     member's capacity), but at least a tenth. Copies that have caught up take what their tasks write (changes);
//     the rest is shared evenly by learners that have not, and by tasks that must be restored before they run.
//   - A copy lacks the state's size if there is none on disk; else what its task has written since it was closed, at
//     most the size. Standbys are taken as caught up at once.
//   - A round takes times.round; what happens meanwhile goes with it. Who was given a task asks for one more round, and
//     one who leaves causes one: these count as rounds, and show only if they change something.
//   - A task that changes hands has no runner for times.handover; in each round all tasks stop for times.pause.
//   - A member that crashes or restarts has times.session to come back: until then rounds wait for it.
//   - While the scenario waits, each member crashes, on average, each crashes.every, at times that the seed alone decides, and
//     comes back after times.restart.
package scenario
