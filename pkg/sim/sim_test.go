package sim_test

import (
	"errors"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
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

// TestSimHistories plays histories in which every rule is kept: all must be good. STREAMWORKER_SIM_SEED plays
// that one alone and prints its trace.
func TestSimHistories(t *testing.T) {
	if s := os.Getenv("STREAMWORKER_SIM_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("STREAMWORKER_SIM_SEED: %v", err)
		}
		r, err := sim.Run(seed, sim.Options{Trace: true})
		failOn(t, err)
		t.Log("\n" + strings.Join(r.Trace, "\n"))
		return
	}
	n := 3000
	if testing.Short() {
		n = 200
	}
	n = histories(t, n)
	total, err := playAll(n)
	failOn(t, err)
	t.Logf("%d histories: %d rounds, %d handovers, %d owners told again of which %d found the release there; at most %d rounds from the last event to rest",
		n, total.Rounds, total.Handovers, total.ToldAgain, total.FoundReleased, total.RestRounds)
	t.Logf("%d histories under exactly once: %d transactions; %d aborted by processes that went on, %d ended by who opened a task",
		total.ExactlyOnce, total.Transactions, total.Aborts, total.Fences)
	t.Logf("faults and events: %v", total.Faults)
	if n < 1000 {
		return
	}
	// What never happens is not tested.
	for _, f := range sim.FaultNames() {
		if total.Faults[f] == 0 {
			t.Errorf("no history has the fault %q", f)
		}
	}
	if total.Handovers < n || total.FoundReleased < n/100 {
		t.Errorf("too few handovers, or too few that are repeated, to be of use")
	}
	if total.Transactions < n || total.Aborts < n/10 || total.Fences < n/100 {
		t.Errorf("too few transactions, or too few that are aborted, to be of use")
	}
}

func failOn(t *testing.T, err error) {
	t.Helper()
	var v *sim.Violation
	if errors.As(err, &v) {
		t.Fatalf("%s\n%s", v.Story(), v)
	} else if err != nil {
		t.Fatal(err)
	}
}

// playAll plays the seeds below n on all processors. The error is that of the lowest seed that fails in a shard.
func playAll(n int) (sim.Result, error) {
	shards := runtime.GOMAXPROCS(0)
	results := make([]sim.Result, shards)
	errs := make([]error, shards)
	var wg sync.WaitGroup
	for shard := range shards {
		wg.Go(func() {
			for seed := shard; seed < n && errs[shard] == nil; seed += shards {
				var r sim.Result
				r, errs[shard] = sim.Run(uint64(seed), sim.Options{})
				results[shard].Add(r)
			}
		})
	}
	wg.Wait()
	var total sim.Result
	for shard := range shards {
		total.Add(results[shard])
		if errs[shard] != nil {
			return total, errs[shard]
		}
	}
	return total, nil
}

func TestSameSeedSameHistory(t *testing.T) {
	for seed := range uint64(20) {
		a, errA := sim.Run(seed, sim.Options{Trace: true})
		b, errB := sim.Run(seed, sim.Options{Trace: true})
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: two histories: %v, %v", seed, errA, errB)
		}
	}
}
