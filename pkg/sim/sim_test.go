package sim_test

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/streamworker/streamworker/pkg/sim"
)

// histories is how many histories a test plays: STREAMWORKER_SIM_HISTORIES, else the given number.
func histories(t *testing.T, otherwise int) int {
	s := os.Getenv("STREAMWORKER_SIM_HISTORIES")
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("STREAMWORKER_SIM_HISTORIES: %v", err)
	}
	return n
}

func TestSimHistories(t *testing.T) {
	var total sim.Result
	n := histories(t, 2000)
	for seed := range uint64(n) {
		r, err := sim.Run(seed, sim.Options{})
		if err != nil {
			report(t, err)
			return
		}
		total.Steps += r.Steps
		total.Faults += r.Faults
		total.Rounds += r.Rounds
		total.RestRounds = max(total.RestRounds, r.RestRounds)
	}
	t.Logf("%d histories: %d steps, %d faults and events, %d rounds; at most %d rounds from the last event to rest",
		n, total.Steps, total.Faults, total.Rounds, total.RestRounds)
}

func report(t *testing.T, err error) {
	t.Helper()
	var v *sim.Violation
	if errors.As(err, &v) {
		t.Errorf("%s\n%s", v.Story(), v)
		return
	}
	t.Error(err)
}
