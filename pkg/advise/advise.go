package advise

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
)

// Policy is what an advice aims at. Zero values stand for the defaults.
type Policy struct {
	Target    float64       // share of the threads that may be at work; default 0.7
	Tolerance float64       // how far below Target fewer instances have to stay, as a share of it; default 0.15
	CatchUp   time.Duration // in which what is behind is to be worked off; default 10 min
	Min, Max  int           // bounds of the advice; Max 0: none
}

// DefaultPolicy is what zero values stand for.
var DefaultPolicy = Policy{Target: 0.7, Tolerance: 0.15, CatchUp: 10 * time.Minute, Min: 1}

// diskShare is how much of a disk state may take, so that compactions have room.
const diskShare = 0.8

// Advice is how many instances are needed, and what that was reckoned from. Rates are records per second.
type Advice struct {
	Instances int      `json:"instances"` // that are there and not leaving
	Leaving   int      `json:"leaving"`
	Needed    int      `json:"needed"`
	Reasons   []string `json:"reasons"` // the decisive one first

	Arriving  float64 `json:"arriving"`
	Processed float64 `json:"processed"`
	Lag       int64   `json:"lag"`     // input records
	Tasks     int     `json:"tasks"`   // that run
	Busy      float64 `json:"busy"`    // threads at work
	Threads   int     `json:"threads"` // that there are
	// PerThread is what a thread that is at work processes; 0: not known, as nothing is processed.
	PerThread float64 `json:"per_thread"`
	// NeededThreads are at work when everything that arrives is processed and the lag is worked off in time.
	NeededThreads float64 `json:"needed_threads"`
	// SecondsToCatchUp is what the lag takes with the present instances; null: it is not worked off at all, or that is not known.
	SecondsToCatchUp *float64 `json:"seconds_to_catch_up"`
	StateBytes       int64    `json:"state_bytes"` // on all disks; 0: not known
}

// ErrNobody is returned when no instance takes tasks.
var ErrNobody = errors.New("no instance takes tasks")

// ErrUntold is returned when an instance does not say how much it has to do.
var ErrUntold = errors.New("an instance does not tell its load")

// group is what the statuses say together.
type group struct {
	staying  []control.Status
	alive    []control.Status
	perUnit  float64 // threads for each unit of capacity, where that is least
	capacity float64 // mean capacity of those that stay
	failing  int
}

// Advise reckons from the present statuses, or from those that Mean returns.
func Advise(statuses []control.Status, p Policy, now time.Time) (Advice, error) {
	p.ensureDefaults()
	g, err := gather(statuses, now)
	if err != nil {
		return Advice{}, err
	}
	a := g.measure()
	switch {
	case a.PerThread > 0:
		a.forLoad(g, p)
		a.heldUp(p)
	case a.Lag > 0 || a.Arriving > 0:
		a.Needed = a.Instances
		a.why("%d records wait and nothing is processed, so it is not known what a record takes: status and the logs say why", a.Lag)
	default:
		a.Needed = 1
		a.why("nothing arrives and nothing is behind")
	}
	a.forDisk(g)
	a.within(p)
	a.remark(g, p)
	return a, nil
}

func (p *Policy) ensureDefaults() {
	d := DefaultPolicy
	if p.Target > 0 {
		d.Target = p.Target
	}
	if p.Tolerance > 0 {
		d.Tolerance = p.Tolerance
	}
	if p.CatchUp > 0 {
		d.CatchUp = p.CatchUp
	}
	d.Min, d.Max = max(p.Min, d.Min), p.Max
	*p = d
}

func gather(statuses []control.Status, now time.Time) (*group, error) {
	g := &group{perUnit: math.Inf(1)}
	for _, s := range statuses {
		if s.Stale(now) || s.Left != "" {
			continue
		}
		if s.Load.Threads == 0 && s.State != control.Starting {
			return nil, fmt.Errorf("%w: %s is of a former version: bring it to this one first", ErrUntold, s.Instance)
		}
		g.alive = append(g.alive, s)
		g.failing += s.FailedTasks
		if s.State != control.Running {
			continue
		}
		g.staying = append(g.staying, s)
		g.capacity += capacity(s)
		g.perUnit = min(g.perUnit, float64(s.Load.Threads)/capacity(s))
	}
	if len(g.staying) == 0 {
		return nil, ErrNobody
	}
	g.capacity /= float64(len(g.staying))
	return g, nil
}

func capacity(s control.Status) float64 { return float64(max(1, s.Capacity)) }

// measure adds up what the instances tell.
func (g *group) measure() Advice {
	a := Advice{Instances: len(g.staying), Reasons: []string{}}
	for _, s := range g.alive {
		a.Arriving += s.Load.Arriving
		a.Processed += s.Rates.In
		a.Lag += s.InputLag()
		a.Tasks += len(s.Active)
		a.Busy += s.Load.Busy
		a.StateBytes += s.Load.StateBytes
		if s.State == control.Draining || s.State == control.Drained {
			a.Leaving++
		}
	}
	for _, s := range g.staying {
		a.Threads += s.Load.Threads
	}
	// Below that, neither figure is more than noise.
	if a.Busy >= 0.002 && a.Processed >= 1 {
		a.PerThread = a.Processed / a.Busy
	}
	return a
}

// forLoad reckons how many instances the load needs. An instance gets tasks by its capacity, so the one with the fewest threads for its
// capacity is the first that has too much to do.
func (a *Advice) forLoad(g *group, p Policy) {
	a.NeededThreads = (a.Arriving + float64(a.Lag)/p.CatchUp.Seconds()) / a.PerThread
	each := g.perUnit * g.capacity
	a.Needed = instances(a.NeededThreads, each*p.Target)
	usable := float64(min(a.Threads, a.Tasks))
	if spare := usable*a.PerThread - a.Arriving; a.Lag > 0 && spare > 0 {
		seconds := math.Ceil(float64(a.Lag) / spare)
		a.SecondsToCatchUp = &seconds
	}
	behind := ""
	if a.Lag > 0 {
		behind = fmt.Sprintf(" and work off %d records in %s", a.Lag, p.CatchUp)
	}
	a.why("to process %.0f records/s%s, %s are at work; with %s in an instance, of which %.0f %% may be, that takes %s",
		a.Arriving, behind, threads(a.NeededThreads), threads(each), p.Target*100, count(a.Needed, "instance"))
	if a.Needed >= a.Instances {
		return
	}
	if careful := min(a.Instances, instances(a.NeededThreads, each*p.Target*(1-p.Tolerance))); careful > a.Needed {
		a.Needed = careful
		a.why("fewer than %d would be too close to the limit: they have to stay %.0f %% below it, so that the advice does not swing", careful, p.Tolerance*100)
	}
}

// instances is how many it takes to have so many threads; what is hardly above a whole number is that number.
func instances(threads, each float64) int { return max(1, int(math.Ceil(threads/each-1e-6))) }

// forDisk keeps as many instances as the state needs disks. Without figures of all of them it says nothing.
func (a *Advice) forDisk(g *group) {
	room := math.Inf(1) // for each unit of capacity
	for _, s := range g.staying {
		if s.Load.FreeBytes == 0 {
			return
		}
		room = min(room, float64(s.Load.StateBytes+s.Load.FreeBytes)/capacity(s))
	}
	if needed := instances(float64(a.StateBytes), diskShare*room*g.capacity); needed > a.Needed {
		a.Needed = needed
		a.why("%s of state, and %s of disk for an instance of which %.0f %% may be used, take %s",
			bytes(float64(a.StateBytes)), bytes(room*g.capacity), diskShare*100, count(needed, "instance"))
	}
}

// within keeps the advice within its bounds.
func (a *Advice) within(p Policy) {
	if a.Tasks > 0 && a.Needed > a.Tasks {
		a.Needed = a.Tasks
		a.why("there are %d tasks: more instances would have nothing to do, more partitions of the input would give them some", a.Tasks)
	}
	if a.Needed < p.Min {
		a.Needed = p.Min
		a.why("at least %d are wanted", p.Min)
	}
	if p.Max > 0 && a.Needed > p.Max {
		a.Needed = p.Max
		a.why("at most %d are wanted", p.Max)
	}
}

// why adds a reason; the last one that has decided goes to the front.
func (a *Advice) why(format string, args ...any) {
	a.Reasons = append([]string{fmt.Sprintf(format, args...)}, a.Reasons...)
}
