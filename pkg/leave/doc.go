// Package leave takes an instance from marked to gone: marked, draining, drained, left.
//
//	          mark                 nothing left          commit, LeaveGroup
//	running ───────▶ draining ───────────────▶ drained ───────────────────▶ left
//	   ▲                │  │                                                  ▲
//	   └────────────────┘  └── scale_down_timeout, --now: give everything up ─┘
//	        cancel
//
// What to do next follows from [Facts] by [Evaluate], which is pure; [Controller] gathers the facts and
// acts. The group decides who gets the tasks: the controller only announces that this instance leaves, and
// looks at what is left. A cancelled leave does not call back releases that were already ordered.
//
// A leave outlives a restart: the [Journal] keeps the mark with its absolute deadline, and the incarnation
// that the mark names, until the leave is cancelled or done.
package leave
