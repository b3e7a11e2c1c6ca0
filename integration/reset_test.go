//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestResetElsewhere resets an application and places the offsets of its input as docs/operations.md shows. The next
// run begins there, not where the configuration says.
func TestResetElsewhere(t *testing.T) {
	const keys = 1000
	s := makeScene(t, broker, keys, "on_terminate: release")
	s.edit("from: {topic: "+s.Input()+"}", "from: {topic: "+s.Input()+", start: latest}")
	s.load.All()
	stateDir := filepath.Join(s.Dir, "state", "a")
	command := func(args ...string) {
		t.Helper()
		if r := harness.Command(t, args...); r.Code != 0 {
			t.Fatalf("streamworker %v: exit code %d: %s", args, r.Code, r.Stderr)
		}
	}
	first := s.start("a")
	s.AwaitBalanced("a")
	command("stop", "--state-dir", stateDir, "--how", "release")
	first.Wait(limit)
	command("reset", "-c", s.Config(), "--state-dir", stateDir, "--yes")
	broker.ConsumerGroups(t, offsetsElsewhere(t, map[string]string{"words": s.Name, "lines": s.Input()})...)

	out := broker.ConsumerGroups(t, "--describe", "--group", s.Name, "--offsets")
	if rows := regexp.MustCompile(`(?m)^\S+\s+`+s.Input()+`\s+\d+\s+0\s+[1-9]\d*\s`).FindAllString(out, -1); len(rows) != partitions {
		t.Fatalf("want each of %d partitions at offset 0, before its end:\n%s", partitions, out)
	}
	s.start("a")
	s.watch.AwaitExact(s.load, limit)
}

// offsetsElsewhere are the arguments of the documented command, with other names and without the broker.
func offsetsElsewhere(t *testing.T, names map[string]string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ *kafka-consumer-groups --bootstrap-server \S+ (.*--reset-offsets.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("docs/operations.md has no kafka-consumer-groups command")
	}
	args := strings.Fields(string(line[1]))
	for i, arg := range args {
		if to, ok := names[arg]; ok {
			args[i] = to
		}
	}
	return args
}
