package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Defaults and bounds of what a file may say.
const (
	defaultRestoreRate = 100 << 20
	defaultSize        = 1 << 30
	maxTasks           = 1_000_000
	maxCapacity        = 1 << 20
	maxTime            = 10_000 * time.Hour
)

// reader fills in a scenario and notes the file's mistakes.
type reader struct{ *Scenario }

func (r reader) scenario(root yamlnode.Node) {
	m := root.Map()
	usual := r.readPolicy(m.Get("policy"))
	r.readTimes(m.Get("times"))
	r.readCrashes(m.Get("crashes"))
	r.readTasks(m.Require("tasks", "list the tasks, e.g. tasks: [T1, T2] or tasks: {count: 8}"), usual)
	r.readMembers(m.Get("members"))
	for i, n := range m.Get("events").List() {
		r.readEvent(n.Named(fmt.Sprintf("event %d", i+1)))
	}
	m.Done()
}

// readPolicy reads the policy, and what a task has of which nothing is said.
func (r reader) readPolicy(n yamlnode.Node) (usual task) {
	m := n.Map()
	r.learners = Learners(m.Get("learners").Enum(string(Eager), string(Eager), string(Stable)))
	r.policy = assign.Policy{
		BalancingFactor: int(m.Get("balancing_factor").Int(2, 2, math.MaxInt32)),
		MaxLearners:     int(m.Get("max_learners").Int(0, 0, math.MaxInt32)),
		Standbys:        int(m.Get("standbys").Int(0, 0, math.MaxInt32)),
	}
	r.restoreRate = readBytes(m.Get("restore_rate"), yamlnode.Node.Rate, defaultRestoreRate, 1)
	usual = r.readState(m, task{stateful: true, size: defaultSize})
	m.Done()
	return usual
}

// readState reads what may be said of the work and the state of a task.
func (r reader) readState(m *yamlnode.Map, usual task) task {
	usual.size = readBytes(m.Get("size"), yamlnode.Node.Size, usual.size, 0)
	usual.changes = readBytes(m.Get("changes"), yamlnode.Node.Rate, usual.changes, 0)
	usual.load = readLoad(m.Get("load"), usual.load)
	return usual
}

func (r reader) readTimes(n yamlnode.Node) {
	m := n.Map()
	read := func(name string) float64 { return m.Get(name).Duration(0, 0, maxTime).Seconds() }
	r.times = times{round: read("round"), pause: read("pause"), handover: read("handover"), session: read("session"), restart: read("restart")}
	m.Done()
}

func (r reader) readCrashes(n yamlnode.Node) {
	m := n.Map()
	if n.Exists() {
		r.crashes.every = m.Require("every", "say how long an instance runs on average, e.g. every: 24h").Duration(time.Hour, time.Second, maxTime).Seconds()
	}
	r.crashes.seed = uint64(m.Get("seed").Int(1, 0, math.MaxInt64))
	m.Done()
}

// readLoad reads a share of an instance.
func readLoad(n yamlnode.Node, def float64) float64 {
	text, said := n.Text()
	if !said {
		n.String("") // says what is wrong with a list or a mapping
		return def
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v <= maxCapacity {
		return v
	}
	n.Errorf("write a share of an instance of capacity 1, e.g. 0.25", "%q is not a load", text)
	return def
}

// readBytes reads a size with a unit, or a bare number of bytes.
func readBytes(n yamlnode.Node, withUnit func(n yamlnode.Node, def, least, most int64) int64, def float64, least int64) float64 {
	if text, ok := n.Text(); ok {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return float64(n.Int(int64(def), least, math.MaxInt64))
		}
	}
	return float64(withUnit(n, int64(def), least, math.MaxInt64))
}

func (r reader) readTasks(n yamlnode.Node, usual task) {
	switch {
	case !n.Exists():
		return
	case n.IsMap():
		m := n.Map()
		count := m.Require("count", "say how many, e.g. tasks: {count: 8}").Int(0, 0, maxTasks)
		sizes := m.Get("sizes").List()
		t := r.readTask(m, usual)
		in := make([]float64, len(sizes)) // sizes, for the tasks in turn
		for i, size := range sizes {
			in[i] = readBytes(size, yamlnode.Node.Size, t.size, 0)
		}
		for i := range count {
			t.name = assign.TaskID{Partition: int32(i)}.String()
			if len(in) > 0 && t.stateful {
				t.size = in[int(i)%len(in)]
			}
			r.tasks = append(r.tasks, t)
		}
	default:
		seen := make(map[string]bool)
		for _, item := range n.List() {
			t := usual
			if item.IsMap() {
				m := item.Map()
				t.name = m.Require("id", "name the task, e.g. {id: T1, size: 10GiB}").String("")
				name := t.name
				t = r.readTask(m, usual)
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
		r.anyChanges = r.anyChanges || t.changes > 0
		r.anyLoad = r.anyLoad || t.load > 0
	}
}

// readTask reads what may be said of one task or of all counted ones.
func (r reader) readTask(m *yamlnode.Map, usual task) task {
	t := r.readState(m, usual)
	if t.stateful = m.Get("stateful").Bool(true); !t.stateful {
		t.size, t.changes = 0, 0
	}
	m.Done()
	return t
}
