package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown is the report as text: machine and settings, the comparison, the floors, the assignor, what failed.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# streamworker and Kafka Streams, %s\n\n%s\n\n", r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.Machine)
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		fmt.Fprintf(&b, "- %s: %s\n", name, r.Settings[name])
	}
	r.comparison(&b)
	r.floors(&b)
	r.assignor(&b)
	if r.failed() > 0 {
		b.WriteString("\n## Failed runs\n\n")
		for _, one := range r.Runs {
			if one.Failed != "" {
				fmt.Fprintf(&b, "- %s, %s, %s, pair %d: %s\n", one.Workload, one.Case, join(one.Side, one.Variant), one.Pair, one.Failed)
			}
		}
	}
	return b.String()
}

func (r *report) comparison(b *strings.Builder) {
	for i, row := range r.Rows {
		if i == 0 || row.Workload != r.Rows[i-1].Workload || row.Case != r.Rows[i-1].Case {
			fmt.Fprintf(b, "\n## %s: %s\n\n| | %s | %s | streamworker is better by |\n| --- | --- | --- | --- |\n",
				row.Workload, row.Case, join(peerSide, row.Peer.Variant), join(workerSide, row.Worker.Variant))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", row.Figure, row.Peer, row.Worker, times(row.Advantage))
	}
}

// floors shows what the same records cost without streamworker's work, beside what it needed for a count.
func (r *report) floors(b *strings.Builder) {
	var seen []string
	for _, one := range r.Runs {
		if one.Workload != floorCommand || slices.Contains(seen, one.Side+one.Case) {
			continue
		}
		if len(seen) == 0 {
			b.WriteString("\n## floors\n\n| | records per CPU second | records per second | peak memory, MiB | of streamworker's count, at least once: per CPU second | per second |\n" +
				"| --- | --- | --- | --- | --- | --- |\n")
		}
		seen = append(seen, one.Side+one.Case)
		floor, count := best(r.Runs, one.Workload, one.Case, one.Side), best(r.Runs, "count", countCase(one.Case, atLeastOnce), workerSide)
		share := func(f figure) string {
			return times(advantage(spreadOfRuns(count, f).Median, spreadOfRuns(floor, f).Median, true))
		}
		fmt.Fprintf(b, "| %s, %s | %s | %s | %s | %s | %s |\n", one.Side, one.Case,
			spreadOfRuns(floor, perCPU), spreadOfRuns(floor, perSecond), spreadOfRuns(floor, peakMemory), share(perCPU), share(perSecond))
	}
}

func (r *report) assignor(b *strings.Builder) {
	for i, g := range r.Growth {
		if i == 0 {
			b.WriteString("\n## assignor\n\n| | time, ms | allocated, MiB | allocations |\n| --- | --- | --- | --- |\n")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %d |\n", g.Case, digits(g.Millis), digits(g.MiB), g.Allocs)
	}
}

func join(name, variant string) string {
	if variant == "" {
		return name
	}
	return name + " (" + variant + ")"
}

// String is the median, and between what it lies if there is more than one run.
func (s spread) String() string {
	switch s.Runs {
	case 0:
		return "-"
	case 1:
		return digits(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", digits(s.Median), digits(s.Min), digits(s.Max))
}

func times(factor float64) string {
	if factor == 0 {
		return "-"
	}
	return digits(factor) + "x"
}

// digits writes a number with three significant digits, or all of those before the point, in groups of three.
func digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
