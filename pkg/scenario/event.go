package scenario

import (
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// event lets one event happen and plans the rounds that follow from it.
func (r *run) event(e event) error {
	subjects := r.present(e)
	var about []string // members the event happens to, with tasks if it is about tasks
	for _, s := range subjects {
		about = append(about, r.apply(e, s))
	}
	if err := r.file.Err(); err != nil {
		return err
	}
	switch {
	case e.all:
		for _, name := range r.names() {
			r.finish(r.members[name], tasksOf(r.members[name].report.Learning))
		}
		r.ask("ready all")
	case len(about) == 0: // all of them had left
	case r.blocked() && (e.kind == crash || e.kind == restart): // the group does not know yet
	default:
		r.ask(string(e.kind) + " " + strings.Join(about, ", "))
	}
	r.await()
	return nil
}

// present finds the members that an event is about, notes those that have left, and reports those that never
// were.
func (r *run) present(e event) (found []subject) {
	if e.selector != nil {
		for _, name := range r.names() {
			if matches(r.members[name].report.Labels, e.selector) {
				found = append(found, subject{name: name})
			}
		}
		if len(found) == 0 {
			e.node.Errorf("members have labels like S1: {labels: {pool: blue}}", "the selector matches no member")
		}
		return found
	}
	for _, s := range e.subjects {
		_, here := r.members[s.name]
		_, left := r.gone[s.name]
		switch {
		case e.kind == join && here:
			s.node.Errorf("join under another name, or let it leave or crash first", "%s is in the group", s.name)
		case e.kind == join || here:
			found = append(found, s)
		case left:
			r.skip(e, s.name)
		default:
			s.node.Errorf("members are listed under members, or join", "there never was a member %s", s.name)
		}
	}
	return found
}

func matches(labels, selector map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// apply lets an event happen to one member, and returns how the trigger names it.
func (r *run) apply(e event, s subject) string {
	m := r.members[s.name]
	switch e.kind {
	case join:
		for _, id := range s.spec.owned {
			for _, other := range r.names() {
				if slices.Contains(r.members[other].report.Owned, id) {
					s.node.Errorf("", "task %s is owned twice, by %s and by %s", r.taskName(id), other, s.name)
				}
			}
		}
		for _, id := range s.spec.owned {
			r.lastOwner[id] = s.name
		}
		if _, led := r.members[r.leader]; !led && s.spec.leads {
			r.leader = s.name
		}
		r.enter(s.spec)
	case leave:
		m.report.Leaving = true
	case cancelLeave:
		m.report.Leaving = false
	case crash, restart:
		r.vanish(s.name, e.kind == restart)
	case timeout:
		if !m.report.Leaving {
			s.node.Errorf("mark it first: - leave: "+s.name, "%s is not leaving", s.name)
			return s.name
		}
		r.leave(s.name)
	case ready:
		for _, id := range s.tasks {
			if !slices.Contains(tasksOf(m.report.Learning), id) {
				hint := "it learns nothing"
				if len(m.report.Learning) > 0 {
					hint = "it learns " + list(r.taskNames(tasksOf(m.report.Learning)))
				}
				s.node.Errorf(hint, "%s does not learn %s", s.name, r.taskName(id))
			}
		}
		r.finish(m, s.tasks)
		return s.name + list(r.taskNames(s.tasks))
	default: // settle and wait are about nobody in particular
	}
	return s.name
}

// finish lets learners catch up.
func (r *run) finish(m *member, ids []assign.TaskID) {
	for _, id := range ids {
		m.done[id] = true
		r.bring(m, id)
	}
}

func list(names []string) string { return "[" + strings.Join(names, ", ") + "]" }
