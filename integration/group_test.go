//go:build integration

package integration

import (
	"fmt"
	"regexp"
	"testing"
)

// TestKafkasOwnTools describes the group by kafka-consumer-groups: members, partitions, lag.
func TestKafkasOwnTools(t *testing.T) {
	s := newScene(t, broker, 1000, []string{"a", "b", "c"})

	out := broker.ConsumerGroups(t, "--describe", "--group", s.Name)
	for p := range partitions {
		// GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID ...
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^%s\s+%s\s+%d\s+(\d+)\s+(\d+)\s+(\d+)\s+\S+`, s.Name, s.Input(), p))
		found := row.FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("no row for partition %d with offset, end, lag and consumer in:\n%s", p, out)
		}
		if found[1] != found[2] || found[3] != "0" {
			t.Errorf("partition %d: everything is counted, but offset %s of %s, lag %s", p, found[1], found[2], found[3])
		}
	}

	out = broker.ConsumerGroups(t, "--describe", "--group", s.Name, "--members", "--verbose")
	// GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT ...
	rows := regexp.MustCompile(fmt.Sprintf(`(?m)^%s\s+\S+\s+\S+\s+\S+\s+[23]\s.*\s%s:[0-7]`, s.Name, s.Input())).FindAllString(out, -1)
	if len(rows) != 3 {
		t.Errorf("want a row for each of three members with its partitions, got %d:\n%s", len(rows), out)
	}

	out = broker.ConsumerGroups(t, "--describe", "--group", s.Name, "--state")
	if !regexp.MustCompile(`streamworker\s+Stable\s+.*3`).MatchString(out) {
		t.Errorf("want the strategy streamworker, state Stable, three members:\n%s", out)
	}
}
