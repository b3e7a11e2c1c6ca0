package scenario

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

func (r reader) readMembers(n yamlnode.Node) {
	m := n.Map()
	owner, learner := make(map[assign.TaskID]string), make(map[assign.TaskID]string)
	leader := ""
	for _, spec := range r.readRanges(m) {
		name := spec.name
		for _, id := range spec.owned {
			if other, taken := owner[id]; taken {
				spec.node.Errorf("give it to one of them", "task %s is owned twice, by %s and by %s", r.taskName(id), other, name)
			}
			owner[id] = name
		}
		for _, id := range spec.learning {
			if other, taken := learner[id]; taken {
				spec.node.Errorf("a task has one learner at most", "task %s is learned twice, by %s and by %s", r.taskName(id), other, name)
			}
			learner[id] = name
		}
		if spec.leads {
			if leader != "" {
				spec.node.Errorf("a group has one leader", "%s and %s both lead", leader, name)
			}
			leader = name
		}
		r.Scenario.members = append(r.Scenario.members, spec)
	}
}

// readRanges reads members under their names, or many under one like S1..100.
func (r reader) readRanges(m *yamlnode.Map) (specs []memberSpec) {
	for _, name := range m.Names() {
		specs = append(specs, r.deal(r.readMember(name, m.Key(name), m.Get(name)))...)
	}
	return specs
}

// deal gives each member of a range what the file says of all, and the tasks in turn.
func (r reader) deal(spec memberSpec) (specs []memberSpec) {
	names := expand(spec.name)
	for i, name := range names {
		one := spec
		if one.name = name; len(names) > 1 {
			one.owned = nil
			for n := i; n < len(spec.owned); n += len(names) {
				one.owned = append(one.owned, spec.owned[n])
			}
		}
		specs = append(specs, one)
	}
	return specs
}

var rangeOfNames = regexp.MustCompile(`^(.*?)([0-9]{1,6})\.\.([0-9]{1,6})$`)

// expand lists the names that one like S1..100 stands for, else the name itself.
func expand(name string) (names []string) {
	m := rangeOfNames.FindStringSubmatch(name)
	if m == nil {
		return []string{name}
	}
	first, _ := strconv.Atoi(m[2]) // digits, and few of them
	last, _ := strconv.Atoi(m[3])
	for i := first; i <= last; i++ {
		names = append(names, m[1]+strconv.Itoa(i))
	}
	return names
}

// readMember reads a member's tasks, or all that may be said of it.
func (r reader) readMember(name string, key, n yamlnode.Node) memberSpec {
	spec := memberSpec{name: name, node: key.Named("members." + name)}
	if len(expand(name)) == 0 {
		key.Errorf("write e.g. S1..3", "%s is nobody", name)
	}
	if name == "" {
		key.Errorf("write a name, e.g. S1", "a member needs a name")
	}
	if !n.IsMap() {
		if spec.owned = r.readTaskList(n); n.Exists() {
			spec.node = n
		}
		return spec
	}
	m := n.Map()
	spec.owned = r.readTaskList(m.Get("tasks"))
	spec.standby = r.readCopies(m.Get("standby"))
	spec.learning = r.readCopies(m.Get("learning"))
	spec.local = r.readCopies(m.Get("local"))
	spec.capacity = uint32(m.Get("capacity").Int(1, 0, maxCapacity))
	spec.rack = m.Get("rack").String("")
	spec.labels = m.Get("labels").StringMap()
	spec.leads = m.Get("leader").Bool(false)
	m.Done()
	held := make(map[assign.TaskID]string)
	for _, x := range []struct {
		as    string
		tasks []assign.TaskID
	}{{"tasks", spec.owned}, {"learning", spec.learning}, {"standby", spec.standby}, {"local", spec.local}} {
		for _, id := range x.tasks {
			if as := cmp.Or(held[id], x.as); as != x.as {
				n.Errorf("a member holds a task in one way", "%s has task %s in %s and in %s", name, r.taskName(id), as, x.as)
			}
			held[id] = x.as
		}
	}
	return spec
}

// readTaskList reads one task or several; each must be listed under tasks, and be named once.
func (r reader) readTaskList(n yamlnode.Node) (ids []assign.TaskID) {
	items := []yamlnode.Node{n}
	text, single := n.Text()
	if _, named := r.index[text]; single && text == "all" && !named {
		for i := range r.tasks {
			ids = append(ids, assign.TaskID{Partition: int32(i)})
		}
		return ids
	}
	if !single {
		items = n.List()
	}
	for _, item := range items {
		name := item.String("")
		id, known := r.index[name]
		switch {
		case !item.Exists():
		case !known:
			hint := "list it under tasks"
			if near := yamlnode.Nearest(name, r.allTasks()); near != "" {
				hint = "did you mean " + near + "? (else " + hint + ")"
			}
			item.Errorf(hint, "there is no task %q", name)
		case slices.Contains(ids, id):
			item.Errorf("", "task %s is named twice", name)
		default:
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, assign.TaskID.Compare)
	return ids
}

func (r reader) allTasks() []string {
	names := make([]string, len(r.tasks))
	for i, t := range r.tasks {
		names[i] = t.name
	}
	return names
}

// readCopies is readTaskList for copies of state, which stateless tasks do not have.
func (r reader) readCopies(n yamlnode.Node) []assign.TaskID {
	ids := r.readTaskList(n)
	for _, id := range ids {
		if !r.tasks[id.Partition].stateful {
			n.Errorf("", "task %s is stateless: there is nothing to copy", r.taskName(id))
		}
	}
	return ids
}
