package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/streamworker/streamworker/integration/harness"
)

// growth is the cost of one plan of the assignor.
type growth struct {
	Case   string  `json:"case"`
	Millis float64 `json:"ms"`
	MiB    float64 `json:"mib"`
	Allocs int64   `json:"allocations"`
}

// growth runs the assignor's own benchmark of groups that grow.
func (b *bench) growth(ctx context.Context) error {
	b.log.Info("measuring the assignor")
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkGrowth$", "-benchmem", "./pkg/group/assign")
	cmd.Dir = harness.Root()
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test -bench: %w\n%s", err, text)
	}
	if b.report.Growth, err = parseGrowth(string(text)); err != nil {
		return err
	}
	return b.report.write(b.out)
}

var benchmarkLine = regexp.MustCompile(`^Benchmark\w+/(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op\s+(\d+) B/op\s+(\d+) allocs/op`)

// parseGrowth reads the lines that go test -bench -benchmem prints. Sub-benchmarks are named as go test names them: with
// underscores for spaces.
func parseGrowth(text string) ([]growth, error) {
	var all []growth
	for l := range strings.Lines(text) {
		m := benchmarkLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", l, err)
		}
		bytes, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", l, err)
		}
		allocs, err := strconv.ParseInt(m[4], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", l, err)
		}
		all = append(all, growth{Case: strings.ReplaceAll(m[1], "_", " "), Millis: ns / 1e6, MiB: bytes / (1 << 20), Allocs: allocs})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no benchmark in the output: %s", text)
	}
	return all, nil
}
