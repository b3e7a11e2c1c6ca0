//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestWordCount runs the canonical example: lines are split into words by stateless tasks, which reach stateful tasks
// through a repartition topic. One of three instances leaves meanwhile.
func TestWordCount(t *testing.T) {
	a := harness.NewApp(t, broker, "words", partitions)
	a.Write(fmt.Sprintf(`app: %s
kafka: {brokers: ["%s"]}
log: {format: json}
streams:
  - name: lines
    from: {topic: %s, value: string}
    steps:
      - flat_map: split(lower(value), " ")
      - filter: value != ""
      - rekey: value
      - count: {store: counts}
      - to: {topic: %s, value: int}
`, a.Name, broker.Address, a.Input(), a.Output()))
	s := &scene{App: a, t: t, processes: map[string]*harness.Process{}}
	s.load, s.watch = harness.NewLoad(t, a, 1000), harness.NewWatch(t, a, 1000)
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		s.start(id)
	}
	awaitBoth := func(ids ...string) {
		harness.Until(t, limit, fmt.Sprintf("%v run both kinds of tasks", ids), func() bool {
			return s.Status().Balanced(2*partitions, ids...)
		})
	}
	awaitBoth(ids...)
	s.load.StartLines(rate/5, 5)
	s.goOn(rate)
	since := time.Now()
	s.Leave("--instance", "c", "--wait")
	s.awaitDrained("c")
	awaitBoth("a", "b")
	s.goOn(rate)
	t.Logf("handovers: %s", figures(s.takeovers(since)))
	s.load.Stop()
	s.watch.AwaitExact(s.load, limit)
}
