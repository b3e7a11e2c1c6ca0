package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Defaults and bounds of what a file may say.
const (
	defaultRestoreRate = 100 << 20
	defaultSize        = 1 << 30
	maxTasks           = 1_000_000
	maxCapacity        = 1 << 20
)

// reader fills in a scenario and notes the file's mistakes.
type reader struct{ *Scenario }

func (r reader) scenario(root yamlnode.Node) {
	m := root.Map()
	size := r.readPolicy(m.Get("policy"))
	r.readTasks(m.Require("tasks", "list the tasks, e.g. tasks: [T1, T2] or tasks: {count: 8}"), size)
	r.readMembers(m.Get("members"))
	for i, n := range m.Get("events").List() {
		r.readEvent(n.Named(fmt.Sprintf("event %d", i+1)))
	}
	m.Done()
}

func (r reader) readPolicy(n yamlnode.Node) (size int64) {
	m := n.Map()
	r.learners = Learners(m.Get("learners").Enum(string(Eager), string(Eager), string(Stable)))
	r.policy = assign.Policy{
		BalancingFactor: int(m.Get("balancing_factor").Int(2, 2, math.MaxInt32)),
		MaxLearners:     int(m.Get("max_learners").Int(0, 0, math.MaxInt32)),
		Standbys:        int(m.Get("standbys").Int(0, 0, math.MaxInt32)),
	}
	r.restoreRate = readBytes(m.Get("restore_rate"), yamlnode.Node.Rate, defaultRestoreRate, 1)
	size = readBytes(m.Get("size"), yamlnode.Node.Size, defaultSize, 0)
	m.Done()
	return size
}

// readBytes reads a size with a unit, or a bare number of bytes.
func readBytes(n yamlnode.Node, withUnit func(n yamlnode.Node, def, least, most int64) int64, def, least int64) int64 {
	if text, ok := n.Text(); ok {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n.Int(def, least, math.MaxInt64)
		}
	}
	return withUnit(n, def, least, math.MaxInt64)
}

func (r reader) readTasks(n yamlnode.Node, size int64) {
	switch {
	case !n.Exists():
		return
	case n.IsMap():
		m := n.Map()
		count := m.Require("count", "say how many, e.g. tasks: {count: 8}").Int(0, 0, maxTasks)
		t := r.readTask(m, size)
		for i := range count {
			t.name = assign.TaskID{Partition: int32(i)}.String()
			r.tasks = append(r.tasks, t)
		}
	default:
		seen := make(map[string]bool)
		for _, item := range n.List() {
			t := task{stateful: true, size: size}
			if item.IsMap() {
				m := item.Map()
				t.name = m.Require("id", "name the task, e.g. {id: T1, size: 10GiB}").String("")
				name := t.name
				t = r.readTask(m, size)
				t.name = name
			} else if t.name = item.String(""); t.name == "" {
				item.Errorf("write a name, e.g. T1", "a task needs an id")
			}
			if seen[t.name] && t.name != "" {
				item.Errorf("", "task %s is listed twice", t.name)
			}
			seen[t.name] = true
			r.tasks = append(r.tasks, t)
		}
	}
	slices.SortStableFunc(r.tasks, func(a, b task) int { return compareNatural(a.name, b.name) })
	for i, t := range r.tasks {
		r.index[t.name] = assign.TaskID{Partition: int32(i)}
	}
}

// readTask reads what may be said of one task or of all counted ones.
func (r reader) readTask(m *yamlnode.Map, size int64) task {
	t := task{stateful: m.Get("stateful").Bool(true)}
	if t.size = readBytes(m.Get("size"), yamlnode.Node.Size, size, 0); !t.stateful {
		t.size = 0
	}
	m.Done()
	return t
}

func (r reader) readMembers(n yamlnode.Node) {
	m := n.Map()
	owner, learner := make(map[assign.TaskID]string), make(map[assign.TaskID]string)
	leader := ""
	for _, name := range m.Names() {
		spec := r.readMember(name, m.Key(name), m.Get(name))
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

// readMember reads a member's tasks, or all that may be said of it.
func (r reader) readMember(name string, key, n yamlnode.Node) memberSpec {
	spec := memberSpec{name: name, node: key.Named("members." + name)}
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
	if _, single := n.Text(); !single {
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

// readEvent reads one item of events: a mapping of the event's name to what it is about.
func (r reader) readEvent(n yamlnode.Node) {
	m := n.Map()
	var e event
	for _, k := range []kind{join, leave, ready, crash, timeout, cancelLeave, settle} {
		v := m.Get(string(k))
		if !slices.Contains(m.Names(), string(k)) {
			continue
		}
		if e.kind != none {
			n.Errorf("write one event an item; what happens at one instant goes into one list", "%s and %s in one event", e.kind, k)
			return
		}
		e = event{kind: k, node: m.Key(string(k)).Named(n.Path() + ", " + string(k))}
		r.readSubjects(&e, v)
	}
	m.Done()
	if e.kind == none {
		if n.IsMap() && len(m.Names()) == 0 {
			n.Errorf("e.g. - leave: S2", "an event is missing here")
		}
		return
	}
	r.events = append(r.events, e)
}

func (r reader) readSubjects(e *event, v yamlnode.Node) {
	text, single := v.Text()
	problems := v.Problems()
	v = v.Named(e.node.Path())
	switch {
	case e.kind == settle:
		if !v.Bool(true) {
			e.kind = none
		}
	case e.kind == ready && single && text == "all":
		e.all = true
	case e.kind == ready:
		m := v.Map()
		for _, name := range m.Names() {
			tasks := m.Get(name).Named(e.node.Path())
			e.subjects = append(e.subjects, subject{name: name, node: m.Key(name).Named(e.node.Path()), tasks: r.readTaskList(tasks)})
		}
		if v.IsMap() && len(e.subjects) == 0 || !v.Exists() {
			v.Errorf("write ready: {S1: [T1]}, or ready: all", "nobody is ready")
		}
	case e.kind == leave && v.IsMap():
		m := v.Map()
		s := m.Require("selector", "write leave: S2, or leave: {selector: {pool: blue}}")
		if e.selector = s.StringMap(); s.Exists() && len(e.selector) == 0 {
			s.Errorf("name a label, e.g. {pool: blue}", "the selector is empty")
		}
		m.Done()
	default:
		e.subjects = r.readNames(e, v)
		if len(e.subjects) == 0 && v.Problems() == problems {
			v.Errorf("name a member, e.g. S1", "the event is about nobody")
		}
	}
}

// readNames reads one member, a list of them, or for join a mapping of names to what they carry.
func (r reader) readNames(e *event, v yamlnode.Node) (subjects []subject) {
	path := e.node.Path()
	add := func(name string, node, carries yamlnode.Node) {
		if slices.ContainsFunc(subjects, func(s subject) bool { return s.name == name }) {
			node.Errorf("", "%s is named twice", name)
			return
		}
		s := subject{name: name, node: node.Named(path)}
		if e.kind == join {
			s.spec = r.readMember(name, s.node, carries)
		}
		subjects = append(subjects, s)
	}
	var read func(v yamlnode.Node, nested bool)
	read = func(v yamlnode.Node, nested bool) {
		switch {
		case v.IsMap() && e.kind == join:
			m := v.Map()
			for _, name := range m.Names() {
				add(name, m.Key(name), m.Get(name))
			}
		case v.IsList() && !nested:
			for _, item := range v.List() {
				read(item.Named(path), true)
			}
		default:
			if name := v.String(""); name != "" {
				add(name, v, yamlnode.Absent(v))
			}
		}
	}
	read(v, false)
	return subjects
}
