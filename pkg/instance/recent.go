package instance

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// recent remembers what a snapshot does not tell: how fast records go, how far learners have come, which tasks were
// taken of late. It learns of the first two whenever a status is made, which publishing does ten times a second.
type recent struct {
	clientID string // what the instances' client ids begin with

	mu        sync.Mutex
	samples   []sample // oldest first, over rateWindow
	behind    map[string]int64
	handovers []control.Handover
}

type sample struct {
	at      time.Time
	in, out int64
	busy    time.Duration
	lag     int64    // of these tasks
	active  []string // never changed
}

const (
	rateWindow = 5 * time.Second
	rateStep   = 500 * time.Millisecond

	handoversFor = time.Hour // that they are told of
)

// events are the functions through which it hears of takeovers.
func (r *recent) events() tasks.Events {
	return tasks.Events{TakenOver: func(t tasks.TakeoverInfo) {
		h := control.Handover{
			Task: t.Task.String(), From: r.instanceOf(t.Release.Owner), Generation: t.Release.Generation, AtMs: time.Now().UnixMilli(),
			GapMs: ms(t.Gap.Seconds()), SlowestMs: ms(t.Slowest.Seconds()), Records: t.Records,
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.handovers) == control.MaxHandovers {
			r.handovers = r.handovers[1:]
		}
		r.handovers = append(r.handovers, h)
	}}
}

// uuid is what coordinators add to a client id to make a member id.
var uuid = regexp.MustCompile(`-[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$`)

// instanceOf is the instance id in a member id, which is made of the client id by the coordinator.
func (r *recent) instanceOf(member string) string {
	return uuid.ReplaceAllString(strings.TrimPrefix(member, r.clientID+"-"), "")
}

// add puts into the status what is remembered, and remembers what the status and the totals say.
func (r *recent) add(s *control.Status, t tasks.Totals, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Rates, s.Load.Arriving, s.Load.Busy = r.rates(s, t, now)
	s.Counts = control.Counts{
		In: t.RecordsIn, Out: t.RecordsOut, Skipped: t.Skipped, DeadLettered: t.DeadLettered, Dropped: t.Dropped, Failures: t.Failures,
	}
	old := now.Add(-handoversFor).UnixMilli()
	r.handovers = slices.DeleteFunc(r.handovers, func(h control.Handover) bool { return h.AtMs < old })
	s.Handovers = slices.Clone(r.handovers)

	behind := make(map[string]int64, len(s.Learning))
	for _, l := range s.Learning {
		if l.Lag >= 0 {
			behind[l.Task] = max(l.Lag, r.behind[l.Task])
		}
	}
	r.behind = behind
	if len(behind) > 0 {
		s.Behind = behind // never changed from here on
	}
}

// rates are those since the oldest sample, with the threads that computed. What arrives is what was processed and what the lag has grown by, which is
// known of tasks that were here all the time.
func (r *recent) rates(s *control.Status, t tasks.Totals, now time.Time) (rates control.Rates, arriving, busy float64) {
	this := sample{at: now, in: t.RecordsIn, out: t.RecordsOut, busy: t.Busy, lag: s.InputLag(), active: s.Active}
	if n := len(r.samples); n == 0 || now.Sub(r.samples[n-1].at) >= rateStep {
		r.samples = append(r.samples, this)
	}
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= rateWindow {
		r.samples = r.samples[1:]
	}
	first := r.samples[0]
	seconds := now.Sub(first.at).Seconds()
	if seconds <= 0 {
		return rates, 0, 0
	}
	rate := func(n int64) float64 { return float64(int64(float64(n)/seconds*10)) / 10 }
	rates = control.Rates{In: rate(this.in - first.in), Out: rate(this.out - first.out)}
	arriving = rates.In
	if slices.Equal(first.active, this.active) {
		arriving = max(0, rate(this.in-first.in+this.lag-first.lag))
	}
	return rates, arriving, math.Round((this.busy-first.busy).Seconds()/seconds*1000) / 1000
}
