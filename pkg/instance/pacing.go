package instance

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How far the heap may grow between two collections. Go's own rule, as far again as what is live, makes rows of state count
// twice, though they cost the collector next to nothing: there are no pointers in them. So it is a part of the rest.
const (
	leastGrowth = 20 << 20
	growthShare = 3 // a third of what is live without rows
	paceEvery   = 100 * time.Millisecond
	paceStep    = 10 // a change of less than a tenth is not worth stopping for
)

// growth is GOGC, in percent, for a heap with so many live bytes, rows among them.
func growth(live, rows uint64) int {
	if live == 0 {
		live = 1 << 20
	}
	rest := live - min(live, rows)
	return int(min(1000, 1+100*max(leastGrowth, rest/growthShare)/live))
}

// pace keeps GOGC at what growth says until ctx ends. It leaves it alone if the environment sets it.
func (i *Instance) pace(ctx context.Context, rows func() int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	set := 0
	for {
		metrics.Read(sample)
		if want := growth(sample[0].Value.Uint64(), uint64(max(0, rows()))); set == 0 || max(want-set, set-want) > set/paceStep {
			old := debug.SetGCPercent(want)
			if set == 0 {
				defer debug.SetGCPercent(old)
			}
			set = want
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
