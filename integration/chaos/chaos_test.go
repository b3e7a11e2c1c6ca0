//go:build integration && linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

func TestMain(m *testing.M) {
	if err := harness.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// setting reads a variable of the environment.
func setting[T any](t testing.TB, name string, parse func(string) (T, error), otherwise T) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return v
}

// TestChaos is described in the package's documentation.
func TestChaos(t *testing.T) {
	seed := setting(t, "CHAOS_SEED", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }, uint64(rand.Uint32()))
	length := setting(t, "CHAOS_TIME", time.ParseDuration, 45*time.Second)
	rate := setting(t, "CHAOS_RATE", strconv.Atoi, 1500)
	cluster := harness.OwnCluster(t, setting(t, "CHAOS_BROKERS", strconv.Atoi, 3))
	for _, guarantee := range []string{"exactly_once", "at_least_once"} {
		for _, kind := range []Kind{Faults, Planned} {
			if only := os.Getenv("CHAOS_GUARANTEE"); only != "" && only != guarantee {
				continue
			}
			if only := os.Getenv("CHAOS_KIND"); only != "" && only != string(kind) {
				continue
			}
			o := Options{Kind: kind, Length: length, Session: session, Instances: []string{"a", "b", "c", "d"}, Brokers: cluster.Nodes()}
			o.Late = guarantee == "exactly_once"
			if kind == Planned {
				o.Length = length / 3
			}
			t.Run(fmt.Sprintf("%s/%s", guarantee, kind), func(t *testing.T) {
				t.Logf("CHAOS_SEED=%d CHAOS_TIME=%v CHAOS_GUARANTEE=%s CHAOS_KIND=%s make chaos repeats this schedule", seed, length, guarantee, kind)
				run(t, cluster, guarantee, seed, rate, o)
			})
		}
	}
}

func run(t *testing.T, cluster *harness.Cluster, guarantee string, seed uint64, rate int, o Options) {
	w := newWorld(t, cluster, guarantee, int(seed%2), o.Instances...)
	defer w.keepLogs()
	w.load.Start(rate)
	w.play(Plan(seed, o))
	used := w.meter.end()
	w.recover()
	w.load.Stop()
	w.load.All() // the last word on each key is that of an owner that nothing happens to
	w.awaitConsumed()
	w.stop()

	exact := guarantee == "exactly_once" || o.Kind == Planned
	if _, late := w.count(unheard); late > 0 && guarantee == "at_least_once" {
		exact = false
		t.Logf("%d processes stopped without an answer to their last commit: what it held was done again", late)
	}
	want := w.load.Table()
	output := w.read(w.app.Output(), false)
	doubled := compare(t, "the output", table(output), want, !exact)
	if repeated, skipped, example := sequence(output); exact && repeated+skipped > 0 {
		t.Errorf("the output: %d records tell nothing new, %d more than one more; e.g. %s", repeated, skipped, example)
	}
	changelog := w.app.Name + "-counts-changelog"
	changes := w.read(changelog, true)
	compare(t, "the changelog", table(changes), want, !exact)
	complete := w.stores(changelog, changes)
	if complete < partitions {
		t.Errorf("after a clean stop only %d stores hold all of their changelog; each of %d tasks had an owner", complete, partitions)
	}
	history, of := w.history(), map[What]int{}
	for _, r := range history {
		of[r.What]++
	}
	if of[Adopted] == 0 || of[Phase] == 0 || of[Committed] == 0 || of[Ended] != len(w.lives()) {
		t.Errorf("the logs do not tell the history: %v", of)
	}
	for _, wrong := range Check(history, 10*session) {
		t.Errorf("the history: %s", wrong)
	}
	aborts, late := w.count(aborted)
	if o.Kind == Planned && aborts > late {
		t.Errorf("%d transactions were aborted, though nothing has failed", aborts-late)
	}
	moves, _ := w.count("handover")
	t.Logf("%s/%s: %d records, %d in the output, %d counted more than once; %d processes, %d handovers; %d aborted transactions, %d of them as Kafka was too slow for a stop",
		guarantee, o.Kind, w.load.Sent(), len(output), doubled, len(w.lives()), moves/2, aborts, late)
	t.Logf("the history: %d plans, %d changes of phases, %d commits", of[Adopted], of[Phase], of[Committed])
	t.Log(used)
}

// keepLogs copies the logs to where CHAOS_LOGS says.
func (w *world) keepLogs() {
	dir := os.Getenv("CHAOS_LOGS")
	if dir == "" {
		return
	}
	to := filepath.Join(dir, w.app.Name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		w.t.Error(err)
		return
	}
	if out, err := exec.Command("cp", "-r", filepath.Join(w.app.Dir, "logs"), to).CombinedOutput(); err != nil {
		w.t.Errorf("keeping the logs: %v: %s", err, out)
	}
	w.t.Logf("the logs are in %s", to)
}
