package dashboard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// Overview is the document behind the page. Every list is there, empty or not.
type Overview struct {
	App        string `json:"app"`
	Version    string `json:"version"`
	ServedBy   string `json:"served_by"` // an instance id
	AtMs       int64  `json:"at_ms"`
	Actions    bool   `json:"actions"` // orders are taken
	Note       string `json:"note"`    // why the others may be missing or old; "": they are as they are
	AllLeaving bool   `json:"all_leaving"`
	Generation int32  `json:"generation"`

	Instances []Instance         `json:"instances"` // in order of id
	Tasks     []control.TaskView `json:"tasks"`     // in order of id
	Handovers []Handover         `json:"handovers"` // the newest first, at most maxHandovers
	Failed    []Failed           `json:"failed"`    // tasks that cannot go on, not all if there are many
	FailedAll int                `json:"failed_tasks"`
	Gone      []Gone             `json:"gone"` // of the last hour, the latest first
}

// Instance is an instance that runs.
type Instance struct {
	control.InstanceView
	Incarnation string           `json:"incarnation"`
	DeadlineMs  int64            `json:"deadline_ms"` // of draining; 0: none
	SeenMs      int64            `json:"seen_ms"`     // when it said this
	Lag         map[string]int64 `json:"lag"`         // input records, per active task
	Behind      map[string]int64 `json:"behind"`      // the most that a learner was behind, per task
	Rates       control.Rates    `json:"rates"`
	Counts      control.Counts   `json:"counts"`
}

// Handover is a task that was taken over live.
type Handover struct {
	control.Handover
	To string `json:"to"`
}

// Failed is a task that an instance cannot go on with.
type Failed struct {
	Instance string `json:"instance"`
	control.Failure
}

// Gone is an instance that has left or fallen silent.
type Gone struct {
	ID     string `json:"id"`
	Why    string `json:"why"` // drained, timeout, now, or silent
	SeenMs int64  `json:"seen_ms"`
}

const (
	maxHandovers = 100
	goneFor      = time.Hour
)

// statuses are this instance's own word for itself, and Kafka's for the others.
func (d *Dashboard) statuses(ctx context.Context) (all []control.Status, note string) {
	self := d.cfg.Self()
	self.Seen = time.Now()
	all = []control.Status{self}
	group, err := d.cfg.Group.Read(ctx)
	if err != nil {
		note = "Kafka does not tell what the other instances do: " + err.Error()
	}
	for _, s := range group {
		if s.Instance != self.Instance {
			all = append(all, s)
		}
	}
	return all, note
}

func (d *Dashboard) look(ctx context.Context) Overview {
	all, note := d.statuses(ctx)
	now := time.Now()
	v := control.NewView(d.cfg.App, all, now)
	o := Overview{
		App: d.cfg.App, Version: d.cfg.Version, ServedBy: all[0].Instance, AtMs: now.UnixMilli(), Actions: d.cfg.Orders != nil,
		Note: note, AllLeaving: v.AllLeaving(), Generation: v.Generation, Tasks: v.Tasks, FailedAll: v.FailedTasks,
		Instances: []Instance{}, Handovers: []Handover{}, Failed: []Failed{}, Gone: []Gone{},
	}
	byID := make(map[string]control.Status, len(all))
	for _, s := range all {
		byID[s.Instance] = s
		for _, h := range s.Handovers {
			o.Handovers = append(o.Handovers, Handover{Handover: h, To: s.Instance})
		}
	}
	slices.SortStableFunc(o.Handovers, func(a, b Handover) int { return cmp.Compare(b.AtMs, a.AtMs) })
	o.Handovers = o.Handovers[:min(len(o.Handovers), maxHandovers)]
	for _, i := range v.Instances {
		o.Instances = append(o.Instances, instance(i, byID[i.ID]))
	}
	for _, f := range v.Failed {
		o.Failed = append(o.Failed, Failed(f))
	}
	for _, g := range v.Gone {
		if now.Sub(g.Seen) < goneFor {
			o.Gone = append(o.Gone, Gone{ID: g.Instance, Why: cmp.Or(g.Left, "silent"), SeenMs: g.Seen.UnixMilli()})
		}
	}
	slices.SortFunc(o.Gone, func(a, b Gone) int { return cmp.Compare(b.SeenMs, a.SeenMs) })
	return o
}

func instance(v control.InstanceView, s control.Status) Instance {
	i := Instance{
		InstanceView: v, Incarnation: s.Incarnation.String(), DeadlineMs: s.DeadlineMs, SeenMs: s.Seen.UnixMilli(),
		Lag: s.Lag, Behind: s.Behind, Rates: s.Rates, Counts: s.Counts,
	}
	if i.Lag == nil {
		i.Lag = map[string]int64{}
	}
	if i.Behind == nil {
		i.Behind = map[string]int64{}
	}
	return i
}
