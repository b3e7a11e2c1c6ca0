package main

import (
	"encoding/json"
	"os"
	"slices"
	"time"
)

// The two sides.
const (
	peerSide   = "Kafka Streams"
	workerSide = "streamworker"
)

// report is the file of results.
type report struct {
	Began    time.Time         `json:"began"`
	Machine  machine           `json:"machine"`
	Settings map[string]string `json:"settings"`
	Runs     []run             `json:"runs"`
	Rows     []row             `json:"rows"`
	Growth   []growth          `json:"assignor,omitempty"`
}

// run is one process, or group of processes, that was measured.
type run struct {
	Workload string             `json:"workload"`
	Case     string             `json:"case"`
	Side     string             `json:"side"`
	Variant  string             `json:"variant,omitempty"` // settings of the side, where several are tried
	Pair     int                `json:"pair"`              // from 1
	Load     float64            `json:"load"`              // average of the machine over the last minute, before the run
	Figures  map[string]float64 `json:"figures,omitempty"`
	Failed   string             `json:"failed,omitempty"`
}

// figure is something that is measured.
type figure struct {
	key, name string
	higher    bool // is better
}

// Figures of more than one workload.
var (
	perCPU     = figure{"records_per_cpu_s", "records per CPU second", true}
	perSecond  = figure{"records_per_s", "records per second", true}
	warmPerCPU = figure{"warm_records_per_cpu_s", "records per CPU second, second half", true}
	warmPerSec = figure{"warm_records_per_s", "records per second, second half", true}
	cpuTime    = figure{"cpu_s", "CPU seconds", false}
	wallTime   = figure{"total_s", "seconds from start to done", false}
	startTime  = figure{"start_s", "seconds from start to running", false}
	peakMemory = figure{"peak_mib", "peak memory, MiB", false}
)

// Figures of one workload.
var (
	ownPerSec   = figure{"own_records_per_s", "records per second, without the start of the process", true}
	startCPU    = figure{"start_cpu_s", "CPU seconds from start to running", false}
	idleMemory  = figure{"idle_mib", "idle memory, MiB", false}
	idleCPU     = figure{"idle_cpu_percent", "idle CPU, % of a core", false}
	stall       = figure{"stall_ms", "longest stall of all partitions, ms", false}
	stallMedian = figure{"stall_median_ms", "longest stall, median of the partitions, ms", false}
	stallBefore = figure{"before_ms", "longest stall before, ms", false}
	slowest     = figure{"slowest_ms", "slowest record, ms", false}
	leaveTime   = figure{"leave_s", "seconds until the instance has ended", false}
	joinTime    = figure{"join_s", "seconds from start to running its share", false}
	joinCPU     = figure{"join_cpu_s", "CPU seconds of the new instance until then", false}
	learnTime   = figure{"learn_s", "seconds from start until its state is warm", false}
	learnCPU    = figure{"learn_cpu_s", "CPU seconds until its state is warm", false}
	learnPerSec = figure{"learn_records_per_s", "records restored per second until then", true}
	learnPerCPU = figure{"learn_records_per_cpu_s", "records restored per CPU second until then", true}

	besidePerCPU = figure{"beside_records_per_cpu_s", "records restored per CPU second, less that of the load", true}
	besidePerSec = figure{"beside_records_per_s", "records restored per second", true}
	besideTime   = figure{"beside_s", "seconds from the leave until they are restored", false}
	besideCPU    = figure{"beside_cpu_s", "CPU seconds until then, less those of the load", false}
	loadCPU      = figure{"load_cpu_percent", "CPU of its half of the load alone, before, % of a core", false}
)

// compared are the figures of each workload that are shown; the first one decides which variant is a side's best.
var compared = map[string][]figure{
	"count":    {perCPU, perSecond, warmPerCPU, warmPerSec, cpuTime, wallTime, peakMemory},
	"cached":   {perCPU, perSecond, cpuTime, peakMemory},
	"windowed": {perCPU, perSecond, warmPerCPU, warmPerSec, cpuTime, wallTime, peakMemory},
	"filter":   {perCPU, perSecond, warmPerCPU, warmPerSec, cpuTime, wallTime, peakMemory},
	"tasks":    {peakMemory, perCPU, perSecond, startTime},
	"restore":  {perCPU, perSecond, ownPerSec, startTime, cpuTime, peakMemory},
	"startup":  {startTime, startCPU, idleMemory, idleCPU},
	"join":     {stall, stallMedian, slowest, stallBefore, joinTime, joinCPU, learnTime, learnCPU, learnPerSec, learnPerCPU, peakMemory},
	"scalein":  {stall, stallMedian, slowest, stallBefore, leaveTime},
	"learn":    {besidePerCPU, besidePerSec, besideTime, besideCPU, loadCPU, stall, slowest, stallBefore, peakMemory},
	"floor":    {perCPU, perSecond, cpuTime, peakMemory},
}

// row compares the sides in one figure.
type row struct {
	Workload string `json:"workload"`
	Case     string `json:"case"`
	Figure   string `json:"figure"`
	Peer     spread `json:"kafka_streams"`
	Worker   spread `json:"streamworker"`
	// Advantage is how many times better streamworker is: the median over the pairs. 0: not known.
	Advantage float64 `json:"advantage"`
}

// summarize makes the rows from the runs that did not fail, in order of their first run.
func summarize(runs []run) []row {
	var rows []row
	type kind struct{ workload, name string }
	var seen []kind
	for _, r := range runs {
		k := kind{r.Workload, r.Case}
		if slices.Contains(seen, k) || r.Side != peerSide && r.Side != workerSide {
			continue
		}
		seen = append(seen, k)
		peer, worker := best(runs, k.workload, k.name, peerSide), best(runs, k.workload, k.name, workerSide)
		for _, f := range compared[k.workload] {
			rows = append(rows, row{
				Workload: k.workload, Case: k.name, Figure: f.name,
				Peer: spreadOfRuns(peer, f), Worker: spreadOfRuns(worker, f), Advantage: pairedAdvantage(peer, worker, f),
			})
		}
	}
	return rows
}

// best are the runs of a side with that one of its variants that has the best median of the first figure.
func best(runs []run, workload, name, side string) []run {
	byVariant := map[string][]run{}
	var variants []string
	for _, r := range runs {
		if r.Workload != workload || r.Case != name || r.Side != side || r.Failed != "" {
			continue
		}
		if byVariant[r.Variant] == nil {
			variants = append(variants, r.Variant)
		}
		byVariant[r.Variant] = append(byVariant[r.Variant], r)
	}
	if len(variants) == 0 {
		return nil
	}
	first := compared[workload][0]
	return byVariant[slices.MaxFunc(variants, func(a, b string) int {
		ma, mb := spreadOfRuns(byVariant[a], first).Median, spreadOfRuns(byVariant[b], first).Median
		switch {
		case ma == mb:
			return 0
		case (ma > mb) == first.higher:
			return 1
		}
		return -1
	})]
}

func spreadOfRuns(runs []run, f figure) spread {
	var values []float64
	variant := ""
	for _, r := range runs {
		if v, ok := r.Figures[f.key]; ok {
			values, variant = append(values, v), r.Variant
		}
	}
	s := spreadOf(values)
	s.Variant = variant
	return s
}

// pairedAdvantage is the median of the advantages within the pairs, whose runs followed each other.
func pairedAdvantage(peer, worker []run, f figure) float64 {
	var all []float64
	for _, p := range peer {
		for _, w := range worker {
			if p.Pair != w.Pair {
				continue
			}
			if a := advantage(p.Figures[f.key], w.Figures[f.key], f.higher); a > 0 {
				all = append(all, a)
			}
		}
	}
	return median(all)
}

func (r *report) failed() int {
	n := 0
	for _, one := range r.Runs {
		if one.Failed != "" {
			n++
		}
	}
	return n
}

// write replaces the files of results.
func (r *report) write(out string) error {
	r.Rows = summarize(r.Runs)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(out+".md", []byte(r.markdown()), 0o644)
}
