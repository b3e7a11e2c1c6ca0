//go:build integration

package integration

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamworker/streamworker/integration/harness"
	"github.com/streamworker/streamworker/pkg/scenario"
)

// What the predictions are made with. A round is over when the last member has heard of it, at its next heartbeat,
// which comes each second.
const (
	learnerBandwidth = "128KiB"
	predictedTimes   = "times: {round: 700ms, handover: 30ms}"
)

// TestPredictions lets an instance leave, and another join, and compares what that takes with what streamworker simulate
// says that it would. The last lines that it prints are the table of docs/scaling.md.
func TestPredictions(t *testing.T) {
	var rows []string
	for _, mode := range []scenario.Learners{scenario.Eager, scenario.Stable} {
		t.Run(string(mode), func(t *testing.T) {
			s := makeScene(t, broker, keys, fmt.Sprintf("learners: {mode: %s, bandwidth: %s, acceptable_lag: 100}", mode, learnerBandwidth))
			// Those that stay come last: they have no state on disk of what they had before others came, which the simulation does not know.
			for _, id := range []string{"c", "d", "a", "b"} {
				pool := map[bool]string{true: "stays", false: "leaves"}[id < "c"]
				s.start(id, "--label", "pool="+pool)
				harness.Until(t, limit, id+" is running", func() bool { return s.Status().Instance(id).State == "running" })
			}
			s.load.All()
			s.AwaitBalanced("a", "b", "c", "d")
			s.watch.AwaitExact(s.load, limit)
			// Tasks of different sizes: some have a longer changelog.
			s.flow(10*rate, 0, 1, 2)
			s.goOn(100_000)
			s.load.Stop()
			s.flow(10*rate, 0, 3)
			s.goOn(60_000)
			s.load.Stop()
			s.watch.AwaitExact(s.load, limit)

			s.flow(rate / 10)
			p := s.predict(mode, "leave: [c, d]")
			s.Leave("--selector", "pool=leaves")
			s.awaitDrained("c")
			s.awaitDrained("d")
			s.AwaitBalanced("a", "b")
			p.began(s.processes["c"], "marked as leaving")
			rows = append(rows, p.compare(t, "two of four leave"))

			p = s.predict(mode, "join: e")
			newcomer := s.start("e")
			s.AwaitBalanced("a", "b", "e")
			p.began(newcomer, "running")
			rows = append(rows, p.compare(t, "one joins two"))
			s.endExact()
		})
	}
	t.Logf("predicted, measured:\n| | rounds | of them with handovers | tasks moved | restored | seconds |\n| --- | --- | --- | --- | --- | --- |\n%s", strings.Join(rows, "\n"))
}

// prediction is what the simulation says of an event, and what to measure it from.
type prediction struct {
	s      *scene
	mode   scenario.Learners
	result scenario.Result
	sizes  map[string]changelog // by task

	since      time.Time
	generation int32
	replayed   map[*harness.Process]float64
}

// changelog is how much of it the broker has.
type changelog struct{ bytes, records int64 }

// predict simulates the event on the group as it is.
func (s *scene) predict(mode scenario.Learners, event string) *prediction {
	s.t.Helper()
	p := &prediction{s: s, mode: mode, sizes: s.changelogs(), generation: s.Status().Generation, replayed: s.readChangelogs()}
	var file strings.Builder
	fmt.Fprintf(&file, "policy: {learners: %s, restore_rate: %s}\n%s\ntasks:\n", mode, learnerBandwidth, predictedTimes)
	for task := range partitions {
		id := fmt.Sprintf("0_%d", task)
		fmt.Fprintf(&file, "  - {id: %s, size: %d}\n", id, p.sizes[id].bytes)
	}
	file.WriteString("members:\n")
	for _, i := range s.Status().Instances {
		fmt.Fprintf(&file, "  %s: [%s]\n", i.ID, strings.Join(i.Active, ", "))
	}
	fmt.Fprintf(&file, "events:\n  - %s\n  - settle: true\n", event)
	s.t.Logf("the scenario:\n%s", file.String())
	parsed, err := scenario.Parse("predicted.yaml", []byte(file.String()))
	if err != nil {
		s.t.Fatal(err)
	}
	if p.result, err = parsed.Run(); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// changelogs asks the broker for the changelog of each task.
func (s *scene) changelogs() map[string]changelog {
	s.t.Helper()
	admin := kadm.NewClient(s.Kafka.Client(s.t))
	topic := s.Name + "-counts-changelog"
	set := make(kadm.TopicsSet)
	for p := range int32(partitions) {
		set.Add(topic, p)
	}
	dirs, err := admin.DescribeAllLogDirs(s.t.Context(), set)
	if err != nil {
		s.t.Fatal(err)
	}
	ends, err := admin.ListEndOffsets(s.t.Context(), topic)
	if err != nil {
		s.t.Fatal(err)
	}
	sizes := map[string]changelog{}
	for _, broker := range dirs {
		broker.EachPartition(func(d kadm.DescribedLogDirPartition) {
			end, _ := ends.Lookup(topic, d.Partition)
			sizes[fmt.Sprintf("0_%d", d.Partition)] = changelog{bytes: d.Size, records: end.Offset}
		})
	}
	if len(sizes) != partitions {
		s.t.Fatalf("the broker has changelogs of %d tasks, want %d", len(sizes), partitions)
	}
	return sizes
}

// readChangelogs counts the records of changelogs that each process which runs has read.
func (s *scene) readChangelogs() map[*harness.Process]float64 {
	s.t.Helper()
	read := map[*harness.Process]float64{}
	for _, process := range s.processes {
		if !process.Running() {
			continue
		}
		n, err := process.Metric("streamworker_restored_records_total")
		if err != nil {
			s.t.Fatal(err)
		}
		read[process] = n
	}
	return read
}

// began finds from when on the time counts: from what a process has logged.
func (p *prediction) began(process *harness.Process, message string) {
	p.s.t.Helper()
	for _, e := range process.Events() {
		if e.Msg == message {
			p.since = e.Time
			return
		}
	}
	p.s.t.Fatalf("%s has not said %q", process.Name, message)
}

// compare makes a row of the table, and fails the test if other tasks moved than was predicted.
func (p *prediction) compare(t *testing.T, what string) string {
	t.Helper()
	s := p.s
	var took []harness.Takeover
	moving := map[int32]bool{}
	harness.Until(t, limit, "the new owners have processed records", func() bool {
		took = s.takeovers(p.since)
		return len(took) >= p.result.Metrics.TasksMoved
	})
	for _, h := range took {
		moving[h.Generation] = true
	}
	predictedMoving := 0
	for _, r := range p.result.Rebalances {
		moves := false
		for _, m := range r.Assigned {
			moves = moves || len(m.Revoked) > 0
		}
		if moves {
			predictedMoving++
		}
	}
	bytes, records := int64(0), int64(0) // of those that moved
	for _, h := range took {
		c := p.sizes[h.Task]
		bytes, records = bytes+c.bytes, records+c.records
	}
	measured := 0.0
	for process, n := range s.readChangelogs() {
		measured += (n - p.replayed[process]) * float64(bytes) / float64(records)
	}
	seconds := took[len(took)-1].At.Sub(p.since).Seconds()
	m := p.result.Metrics
	if len(took) != m.TasksMoved {
		t.Errorf("%s: %d tasks moved, predicted were %d", what, len(took), m.TasksMoved)
	}
	if predicted := float64(*m.BytesRestored); math.Abs(measured-predicted) > predicted/4 {
		t.Errorf("%s: %.0f bytes were restored, predicted were %.0f", what, measured, predicted)
	}
	if len(moving) > m.TasksMoved {
		t.Errorf("%s: %d tasks moved in %d rounds", what, m.TasksMoved, len(moving))
	}
	return fmt.Sprintf("| %s, %s | %d, %d | %d, %d | %d, %d | %.2f, %.2f MiB | %.1f, %.1f |", what, p.mode,
		*m.Rounds, s.Status().Generation-p.generation, predictedMoving, len(moving), m.TasksMoved, len(took),
		float64(*m.BytesRestored)/(1<<20), measured/(1<<20), *m.SecondsToBalance, seconds)
}
