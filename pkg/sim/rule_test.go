package sim_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/streamworker/streamworker/pkg/sim"
)

// maxBroken bounds the histories in which a broken rule must show.
const maxBroken = 20_000

// TestSimBrokenRules breaks one rule of the handover after the other, in the modelled part of the processes, and
// demands that some history fails. Run it with -v to see the table.
func TestSimBrokenRules(t *testing.T) {
	if testing.Short() {
		t.Skip("plays thousands of histories")
	}
	rules := sim.Rules()
	caught := make([]*sim.Violation, len(rules))
	after := make([]int, len(rules))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range rules {
		g.Go(func() (err error) {
			caught[i], after[i], err = firstViolation(r)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-24s  %-70s  %9s  %s\n", "rule", "what is done instead", "histories", "caught by")
	for i, r := range rules {
		v := caught[i]
		if v == nil {
			t.Errorf("breaking %q goes unnoticed in %d histories", r, maxBroken)
			continue
		}
		fmt.Fprintf(&table, "%-24s  %-70s  %9d  %s: %s\n", r, r.Broken(), after[i], v.Demand, v.What)
	}
	t.Log("\n" + table.String())
}

// firstViolation plays histories in which the rule is broken until one fails, and says how many it took.
func firstViolation(r sim.Rule) (*sim.Violation, int, error) {
	for seed := range uint64(maxBroken) {
		_, err := sim.Run(seed, sim.Options{Broken: r})
		var v *sim.Violation
		if errors.As(err, &v) {
			return v, int(seed) + 1, nil
		} else if err != nil {
			return nil, 0, err
		}
	}
	return nil, maxBroken, nil
}
