package scenario

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// never is the time of what does not happen.
var never = math.Inf(1)

// absent is a member that crashed or restarts. While the group has not noticed, it waits for it in every round.
type absent struct {
	name    string
	was     *member
	noticed float64 // when its session expires; the past if it has
	returns float64
}

// ask has the group plan anew: when the round is over that this begins or joins. Without a trigger it is a round
// that a member asks for to say how far it has come; it shows only if something follows from it.
func (r *run) ask(trigger string) {
	if trigger != "" {
		r.triggers = append(r.triggers, trigger)
	}
	r.planAt = min(r.planAt, r.now+r.times.round)
}

// planDue is when the round under way is over. It waits for members that the group does not know to be gone.
func (r *run) planDue() float64 {
	due := r.planAt
	for _, a := range r.absent {
		if a.noticed > r.now && due < never {
			due = max(due, min(a.noticed, a.returns))
		}
	}
	return due
}

// blocked tells whether a round waits for a member that is gone.
func (r *run) blocked() bool {
	return slices.ContainsFunc(r.absent, func(a absent) bool { return a.noticed > r.now })
}

// await lets the rounds under way come to their end, but for those that wait for a member that is gone.
func (r *run) await() {
	for r.planAt < never && !r.blocked() {
		if r.planAt <= r.now {
			r.plan() // no time passes, not even for those who lack nothing
		} else {
			r.timed = true
			r.step(never)
		}
	}
}

// settle lets time pass until every learner has taken over and every task runs.
func (r *run) settle() {
	r.timed = true
	if in := r.input(); len(r.absent) == 0 && assign.Changes(in, assign.Assign(in)) {
		r.ask("settle") // the file began with a group that is not at rest
	}
	for r.step(never) {
	}
}

// wait lets time pass, with crashes if there are any.
func (r *run) wait(seconds float64) {
	r.timed = true
	until := r.now + seconds
	r.crashing = r.crashes.every > 0
	for _, name := range r.names() { // no member is older than another: crashes have no memory
		r.members[name].crashAt = r.nextCrash()
	}
	for r.now < until && r.step(until) {
	}
	r.crashing = false
}

// nextCrash draws when a member crashes that runs from now on.
func (r *run) nextCrash() float64 {
	if !r.crashing {
		return never
	}
	if r.random == nil {
		r.random = rand.New(rand.NewPCG(r.crashes.seed, 0))
	}
	return r.now + r.random.ExpFloat64()*r.crashes.every
}

// step goes on to the next thing that happens, at most to a time, and lets it happen. It reports whether there was
// anything.
func (r *run) step(until float64) bool {
	at := r.restoring()
	next := min(until, r.planDue())
	for _, x := range at {
		next = min(next, r.now+x.seconds())
	}
	for _, a := range r.absent {
		next = min(next, a.returns)
		if a.noticed > r.now {
			next = min(next, a.noticed)
		}
	}
	if r.crashing {
		for _, m := range r.members {
			next = min(next, m.crashAt)
		}
	}
	if next == never {
		return false
	}
	before := r.now
	r.pass(next-r.now, at)
	r.now = next
	r.finishRestores(at, next-before)
	r.notice(before)
	r.returning()
	r.crash()
	if r.planDue() <= r.now {
		r.plan()
	}
	r.sample()
	return true
}

// finishRestores lets those learn of it that have caught up.
func (r *run) finishRestores(at []restore, seconds float64) {
	finished := make(map[*member][]assign.TaskID)
	var members []*member
	for _, x := range at {
		if !x.advance(seconds) || !x.learner {
			continue
		}
		x.m.done[x.id] = true
		if finished[x.m] == nil {
			members = append(members, x.m)
		}
		finished[x.m] = append(finished[x.m], x.id)
	}
	var about []string
	for _, m := range members {
		if len(m.ready(r.learners)) > 0 {
			about = append(about, m.name+list(r.taskNames(finished[m])))
		}
	}
	if len(about) > 0 {
		r.ask("ready " + strings.Join(about, ", "))
	}
}

// notice lets the group find out about members whose sessions have expired since a time.
func (r *run) notice(since float64) {
	for i, a := range r.absent {
		if a.noticed > since && a.noticed <= r.now {
			r.absent[i].noticed = math.Inf(-1)
			r.ask("crash " + a.name)
		}
	}
	r.absent = slices.DeleteFunc(r.absent, func(a absent) bool { return a.noticed < 0 && a.returns == never })
}

// returning lets members join whose restart is over.
func (r *run) returning() {
	for _, a := range slices.Clone(r.absent) {
		if a.returns <= r.now {
			r.enter(a.was.spec)
			r.members[a.name].report.Leaving = a.was.report.Leaving // a restart goes on with a drain
			r.ask("return " + a.name)
		}
	}
}

// crash lets members crash whose time has come. They restart.
func (r *run) crash() {
	if !r.crashing {
		return
	}
	for _, name := range r.names() {
		if r.members[name].crashAt <= r.now {
			if r.vanish(name, true); !r.blocked() {
				r.ask("crash " + name)
			}
		}
	}
}

// vanish takes a member out without a word to the group, which finds out at once if sessions take no time.
func (r *run) vanish(name string, restarts bool) {
	a := absent{name: name, was: r.members[name], noticed: r.now + r.times.session, returns: never}
	if restarts {
		a.returns = r.now + r.times.restart
	}
	r.remove(name)
	if r.times.session == 0 {
		a.noticed = math.Inf(-1)
	}
	if a.noticed > r.now || restarts {
		r.absent = append(r.absent, a)
	}
}
