//go:build integration

package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
)

// seeds is how many inputs each case gets.
func seeds(t *testing.T) uint64 {
	text := os.Getenv("DIFFERENTIAL_SEEDS")
	if text == "" {
		return 5
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("DIFFERENTIAL_SEEDS: %v", err)
	}
	return n
}

// TestSameResults gives each topology the same records on both sides, and wants the same results.
func TestSameResults(t *testing.T) {
	p := startPeer(t)
	n := seeds(t)
	cases := loadCases(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			written := 0
			for seed := range n {
				records := c.generate(seed)
				theirs, ours := p.run(t, c.KafkaStreams, records), run(t, c.top, records)
				for _, difference := range c.compare(records, theirs, ours) {
					t.Errorf("seed %d, %s", seed, difference)
				}
				for _, out := range theirs.Outputs {
					written += len(out)
				}
				if t.Failed() {
					return
				}
			}
			if written == 0 {
				t.Error("neither side wrote anything: the case shows nothing")
			}
		})
	}
	for _, d := range loadDeviations(t) {
		t.Run(d.name, func(t *testing.T) { d.check(t, p) })
	}
	t.Run("a difference is seen", func(t *testing.T) { mustDiffer(t, p, cases) })
}

// mustDiffer counts on one side and sums on the other.
func mustDiffer(t *testing.T, p *peer, cases []*testCase) {
	count := cases[slices.IndexFunc(cases, func(c *testCase) bool { return c.name == "count" })]
	sum := slices.Clone(count.KafkaStreams)
	sum[1] = map[string]any{"op": "reduce", "fn": "sum"}
	records := count.generate(0)
	differences := count.compare(records, p.run(t, sum, records), run(t, count.top, records))
	if len(differences) != 1 || !strings.Contains(differences[0], "topic out: update") {
		t.Errorf("a count and a sum differ by %q", differences)
	}
}

// run is what streamworker test --input does.
func run(t *testing.T, top *topology.Topology, records []record) *result {
	t.Helper()
	script, err := topologytest.ReadScript(bytes.NewReader(marshal(t, map[string]any{"inputs": records})))
	if err != nil {
		t.Fatal(err)
	}
	res, err := script.Run(top)
	if err != nil {
		t.Fatalf("streamworker: %v", err)
	}
	var b bytes.Buffer
	if err := res.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	r, err := readResult(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compare tells the differences, at most one a topic.
func (c *testCase) compare(records []record, theirs, ours *result) []string {
	if got, want := slices.Sorted(maps.Keys(ours.Outputs)), slices.Sorted(maps.Keys(theirs.Outputs)); !slices.Equal(got, want) {
		return []string{fmt.Sprintf("streamworker writes topics %q, Kafka Streams %q", got, want)}
	}
	var differences []string
	for _, topic := range slices.Sorted(maps.Keys(theirs.Outputs)) {
		want, got := c.ordered(topic, theirs.Outputs[topic]), c.ordered(topic, ours.Outputs[topic])
		if c.Compare[topic] == unmatched {
			var alone [2][]output
			want, alone[0] = apart(want)
			got, alone[1] = apart(got)
			if text := compareAlone(want, alone[0], alone[1]); text != "" {
				differences = append(differences, fmt.Sprintf("topic %s: %s", topic, text))
			}
		}
		if i := firstDifference(want, got); i >= 0 {
			differences = append(differences, fmt.Sprintf("topic %s: update %d differs\n%s", topic, i, around(records, want, got, i)))
		} else if c.Compare[topic] != unmatched && !reflect.DeepEqual(theirs.Tables[topic], ours.Tables[topic]) {
			differences = append(differences, fmt.Sprintf("topic %s: the tables differ\nKafka Streams: %v\nstreamworker:  %v", topic, theirs.Tables[topic], ours.Tables[topic]))
		}
	}
	return differences
}

// ordered brings what has no order into one, and leaves out what is not compared.
func (c *testCase) ordered(topic string, all []output) []output {
	all = slices.DeleteFunc(slices.Clone(all), func(o output) bool { return o.Key == flushKey })
	how := c.Compare[topic]
	for i := range all {
		if how == foreignKey && all[i].Value == nil {
			all[i].TS = 0
		}
	}
	if how == foreignKey || how == perKey {
		slices.SortStableFunc(all, func(a, b output) int { return strings.Compare(a.row(), b.row()) })
	}
	return all
}

func firstDifference(want, got []output) int {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || !reflect.DeepEqual(want[i], got[i]) {
			return i
		}
	}
	return -1
}

// around shows both sides near the first difference, and the input up to it.
func around(records []record, want, got []output, i int) string {
	var b strings.Builder
	for _, side := range []struct {
		name string
		all  []output
	}{{"Kafka Streams", want}, {"streamworker", got}} {
		all := side.all
		fmt.Fprintf(&b, "%s:\n", side.name)
		for j := max(0, i-3); j < min(len(all), i+4); j++ {
			mark := " "
			if j == i {
				mark = ">"
			}
			fmt.Fprintf(&b, "  %s %v\n", mark, all[j])
		}
	}
	last := len(records) - 1
	for _, all := range [][]output{want, got} {
		if i < len(all) {
			last = min(last, all[i].Input)
		}
	}
	b.WriteString("input:\n")
	for j := max(0, last-30); j <= last; j++ {
		text, _ := json.Marshal(records[j])
		fmt.Fprintf(&b, "  %d %s\n", j, text)
	}
	return b.String()
}
