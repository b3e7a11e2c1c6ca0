package control

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// View is the group as its instances' statuses show it. Its JSON form is that of `status -o json`: every
// list is there, empty or not, and instances that are gone are left out.
type View struct {
	App        string         `json:"app"`
	Generation int32          `json:"generation"` // the newest that an instance is in
	Instances  []InstanceView `json:"instances"`  // in order of id
	Tasks      []TaskView     `json:"tasks"`      // in order of id

	Gone        []Status     `json:"-"` // instances that have left or fallen silent
	Failed      []FailedTask `json:"-"` // tasks that cannot go on, at most MaxFailed of each instance, in order of id
	FailedTasks int          `json:"-"` // how many there are
	// BadGlobals are global tables with records that instances could not read, in order of table and instance.
	BadGlobals []InstanceBadGlobal `json:"-"`
}

// InstanceBadGlobal is a global table as one instance has it.
type InstanceBadGlobal struct {
	Instance string
	BadGlobal
}

// InstanceView is one instance.
type InstanceView struct {
	ID       string            `json:"id"`
	State    State             `json:"state"`
	Labels   map[string]string `json:"labels"`
	Capacity uint32            `json:"capacity"` // its share of the tasks, beside that of others
	Active   []string          `json:"active"`
	Learning []Learning        `json:"learning"`
	Standby  []string          `json:"standby"`
	Load     LoadView          `json:"load"`
	Drain    *DrainView        `json:"drain"` // null: it is not leaving

	Deadline time.Time `json:"-"` // of draining; zero: none
}

// LoadView is what an instance has to do and what it could do, over the last seconds.
type LoadView struct {
	In         float64 `json:"in"`       // records read per second
	Out        float64 `json:"out"`      // records written per second, but to changelogs
	Arriving   float64 `json:"arriving"` // input records per second that are new, processed or not
	Lag        int64   `json:"lag"`      // input records
	Threads    int     `json:"threads"`
	Busy       float64 `json:"busy"`        // threads that computed, on the average
	Headroom   float64 `json:"headroom"`    // share of the threads that had nothing to do, from 0 to 1
	StateBytes int64   `json:"state_bytes"` // on disk
	FreeBytes  int64   `json:"free_bytes"`  // on that disk; 0: not known
}

// DrainView is how far a leave has come.
type DrainView struct {
	Tasks      int   `json:"tasks"`       // not handed over yet
	DeadlineMs int64 `json:"deadline_ms"` // ms since the epoch; 0: none
}

// FailedTask is a task that an instance cannot go on with.
type FailedTask struct {
	Instance string
	Failure
}

// TaskView is one task.
type TaskView struct {
	ID      string  `json:"id"`
	Active  *string `json:"active"`  // the instance that runs it
	Learner *string `json:"learner"` // the instance that learns it
	Lag     int64   `json:"lag"`     // input records that the active is behind

	generation int32 // in which Active was told
}

// NewView puts statuses together, as they are at one moment.
func NewView(app string, statuses []Status, now time.Time) View {
	v := View{App: app, Instances: []InstanceView{}, Tasks: []TaskView{}}
	tasks := make(map[string]*TaskView)
	task := func(id string) *TaskView {
		t, ok := tasks[id]
		if !ok {
			t = &TaskView{ID: id}
			tasks[id] = t
		}
		return t
	}
	for _, s := range statuses {
		if s.Stale(now) || s.Left != "" {
			v.Gone = append(v.Gone, s)
			continue
		}
		v.Generation = max(v.Generation, s.Generation)
		v.Instances = append(v.Instances, instanceView(s))
		for _, id := range s.Active {
			// Statuses are not of one instant: of two that claim a task, the one that was told later has it.
			if t := task(id); t.Active == nil || s.Generation > t.generation {
				t.Active, t.Lag, t.generation = &s.Instance, s.Lag[id], s.Generation
			}
		}
		for _, l := range s.Learning {
			task(l.Task).Learner = &s.Instance
		}
		for _, id := range s.Standby {
			task(id)
		}
		v.FailedTasks += s.FailedTasks
		for _, f := range s.Failed {
			v.Failed = append(v.Failed, FailedTask{Instance: s.Instance, Failure: f})
		}
		for _, g := range s.BadGlobals {
			v.BadGlobals = append(v.BadGlobals, InstanceBadGlobal{Instance: s.Instance, BadGlobal: g})
		}
	}
	slices.SortFunc(v.Failed, func(a, b FailedTask) int {
		return cmp.Or(compareTasks(a.Task, b.Task), cmp.Compare(a.Instance, b.Instance))
	})
	slices.SortFunc(v.BadGlobals, func(a, b InstanceBadGlobal) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Instance, b.Instance))
	})
	slices.SortFunc(v.Instances, func(a, b InstanceView) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range tasks {
		v.Tasks = append(v.Tasks, *t)
	}
	slices.SortFunc(v.Tasks, func(a, b TaskView) int { return compareTasks(a.ID, b.ID) })
	return v
}

func instanceView(s Status) InstanceView {
	i := InstanceView{
		ID: s.Instance, State: s.State, Labels: s.Labels,
		Active: sortedTasks(s.Active), Learning: slices.Clone(s.Learning), Standby: sortedTasks(s.Standby),
		Capacity: max(1, s.Capacity),
		Load: LoadView{
			In: s.Rates.In, Out: s.Rates.Out, Arriving: s.Load.Arriving, Lag: s.InputLag(), Threads: s.Load.Threads, Busy: s.Load.Busy,
			Headroom: math.Round(s.Headroom()*1000) / 1000, StateBytes: s.Load.StateBytes, FreeBytes: s.Load.FreeBytes,
		},
	}
	if s.State == Draining || s.State == Drained {
		i.Drain = &DrainView{Tasks: len(s.Active), DeadlineMs: s.DeadlineMs}
	}
	if i.Labels == nil {
		i.Labels = map[string]string{}
	}
	if i.Learning == nil {
		i.Learning = []Learning{}
	}
	slices.SortFunc(i.Learning, func(a, b Learning) int { return compareTasks(a.Task, b.Task) })
	if s.DeadlineMs > 0 {
		i.Deadline = time.UnixMilli(s.DeadlineMs)
	}
	return i
}

func sortedTasks(ids []string) []string {
	out := append([]string{}, ids...)
	slices.SortFunc(out, compareTasks)
	return out
}

// compareTasks orders task ids by subtopology, then partition, as numbers.
func compareTasks(a, b string) int {
	sa, pa := splitTask(a)
	sb, pb := splitTask(b)
	return cmp.Or(cmp.Compare(sa, sb), cmp.Compare(pa, pb), cmp.Compare(a, b))
}

func splitTask(id string) (subtopology, partition int) {
	s, p, _ := strings.Cut(id, "_")
	subtopology, _ = strconv.Atoi(s)
	partition, _ = strconv.Atoi(p)
	return subtopology, partition
}

// AllLeaving reports whether no instance is there to take the tasks of those that leave.
func (v View) AllLeaving() bool {
	for _, i := range v.Instances {
		if i.State != Draining && i.State != Drained {
			return false
		}
	}
	return len(v.Instances) > 0
}
