package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/sim"
)

// maxBroken bounds the histories in which a broken rule must show.
const maxBroken = 20_000

// TestSimBrokenRules breaks one rule of the handover after the other, in the modelled part of the processes, and
// demands that some history fails. Run it with -v to see the table.
func TestSimBrokenRules(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "%-24s  %-62s  %9s  %s\n", "rule", "what is done instead", "histories", "caught by")
	for _, r := range sim.Rules() {
		v, n := firstViolation(t, r)
		if v == nil {
			t.Errorf("breaking %q goes unnoticed in %d histories", r, maxBroken)
			continue
		}
		fmt.Fprintf(&table, "%-24s  %-62s  %9d  %s: %s\n", r, r.Broken(), n, v.Demand, v.What)
	}
	t.Log("\n" + table.String())
}

func firstViolation(t *testing.T, r sim.Rule) (*sim.Violation, int) {
	for seed := range uint64(maxBroken) {
		_, err := sim.Run(seed, sim.Options{Broken: r})
		if err == nil {
			continue
		}
		var v *sim.Violation
		if !errors.As(err, &v) {
			t.Fatal(err)
		}
		return v, int(seed) + 1
	}
	return nil, maxBroken
}
