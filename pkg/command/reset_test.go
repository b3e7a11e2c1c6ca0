package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/control"
)

// resettable is a stopped application that has something to reset.
func resettable(t *testing.T) (file, dir, brokers string) {
	t.Helper()
	a := newApplication(t)
	a.put(t, "a", control.Stopping, nil)
	adm := fresh(t, a.brokers)
	compact := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	if _, err := adm.CreateTopics(t.Context(), 2, 1, compact, "lines", "counts", "words-counts-changelog", "words-old-changelog"); err != nil {
		t.Fatal(err)
	}
	var offsets kadm.Offsets
	offsets.AddOffset("lines", 0, 7, -1)
	if err := adm.CommitAllOffsets(t.Context(), "words", offsets); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tasks", "0_0"), 0o750); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(words, "127.0.0.1:1]", a.brokers+"], heartbeat: 200ms", 1) + fmt.Sprintf("state: {dir: %q}\n", dir)
	return write(t, "words.yaml", text), dir, a.brokers
}

// fresh is a client that has nothing cached.
func fresh(t *testing.T, brokers string) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

func TestReset(t *testing.T) {
	file, dir, brokers := resettable(t)
	left := func() string {
		t.Helper()
		found, err := fresh(t, brokers).ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(found.Names(), " ")
	}
	all := left()

	var s shell
	if code := s.run(t, "reset", "-c", file); code != exitUsage || !strings.Contains(s.stderr, "--yes") {
		t.Errorf("with nobody to ask: %d %s", code, s.stderr)
	}
	if code := s.run(t, "reset", "-c", file, "-o", "json"); code != exitUsage {
		t.Errorf("-o json without --yes: %d %s", code, s.stderr)
	}
	if code := s.run(t, "reset", "-c", file, "-o", "json", "--yes", "--brokers", "127.0.0.1:1"); code != exitError || !strings.HasPrefix(s.stdout, "{") || !strings.Contains(s.stdout, "cannot reach Kafka") {
		t.Errorf("-o json without Kafka: %d %s", code, s.stdout)
	}
	s.answers = "no\n"
	if code := s.run(t, "reset", "-c", file); code != exitError || !strings.Contains(s.stderr, "nothing was deleted") {
		t.Errorf("declined: %d %s", code, s.stderr)
	}
	s.answers = ""
	if code := s.run(t, "reset", "-c", file, "--dry-run"); code != exitOK {
		t.Errorf("--dry-run: %d %s", code, s.stderr)
	}
	want := `words: to be deleted

  group      words                   committed offsets of lines (1 partition)
  topic      words-counts-changelog  2 partitions, changelog of store counts
  topic      words-control           2 partitions, marks and statuses of instances
  directory  DIR/tasks/0_0  0 bytes, local state

not touched

  topic words-old-changelog: the configuration has no such store; it belongs to another application, or to a former version of this one
  input topics (lines): nothing is deleted
  topics that are written to (counts): they keep their records, and the next run writes its results behind them
  local state on other hosts: instances there drop it at their next start, as its changelogs are new
`
	if got := strings.ReplaceAll(s.stdout, dir, "DIR"); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left() != all {
		t.Errorf("left without a yes: %s", left())
	}

	s.answers = "y\n"
	if code := s.run(t, "reset", "-c", file); code != exitOK || !strings.Contains(s.stdout, "Delete this of words? [y/N]") ||
		!strings.Contains(s.stdout, "deleted topic words-counts-changelog\n") || !strings.Contains(s.stdout, "words is reset\n") {
		t.Errorf("%d %s %s", code, s.stdout, s.stderr)
	}
	if want := "counts lines words-old-changelog"; left() != want {
		t.Errorf("left: %s, want %s", left(), want)
	}
	if _, err := os.Stat(filepath.Join(dir, "tasks", "0_0")); err == nil {
		t.Error("the local state is still there")
	}
	s.answers = ""
	if code := s.run(t, "reset", "-c", file, "--yes"); code != exitOK || !strings.Contains(s.stdout, "words: nothing to delete") {
		t.Errorf("once more: %d %s %s", code, s.stdout, s.stderr)
	}
}

func TestResetJSON(t *testing.T) {
	file, _, _ := resettable(t)
	var s shell
	type step struct {
		Kind, Name string
		Done       bool
	}
	var got struct {
		App             string
		Steps           []step
		Stays, Warnings []string
		OK              bool
		DryRun          bool `json:"dry_run"`
	}
	for _, c := range []struct {
		args []string
		done bool
	}{{[]string{"--dry-run"}, false}, {[]string{"--yes"}, true}} {
		got.Steps = nil
		code := s.run(t, append([]string{"reset", "-c", file, "--topics", "-o", "json"}, c.args...)...)
		if err := json.Unmarshal([]byte(s.stdout), &got); code != exitOK || err != nil || !got.OK || got.DryRun == c.done || len(got.Warnings) != 1 {
			t.Fatalf("%v: %d %v %s %s", c.args, code, err, s.stdout, s.stderr)
		}
		want := []step{{"topic", "words-counts-changelog", c.done}, {"topic", "words-control", c.done}}
		if fmt.Sprint(got.Steps) != fmt.Sprint(want) {
			t.Errorf("%v: steps %+v, want %+v", c.args, got.Steps, want)
		}
	}
}

// Under a live group the exit code is 1, nothing is asked, and the instance is named.
func TestResetAlive(t *testing.T) {
	file, _, _ := resettable(t)
	b := start(t, file, "b")
	var s shell
	await(t, "b in the group", func() bool {
		select {
		case code := <-b.code:
			t.Fatalf("b has ended with %d:\n%s", code, b.log)
		default:
		}
		return s.run(t, "reset", "-c", file, "--yes", "--state") == exitError && strings.Contains(s.stderr, "words-b at ") &&
			!strings.Contains(s.stderr, "everything was deleted") // b came while this was under way
	})
	if !strings.Contains(s.stderr, "the application is running") || s.stdout != "" {
		t.Errorf("%q %s\n%s", s.stdout, s.stderr, b.log)
	}
}

func TestResetUnreachable(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	address := c.ListenAddrs()[0]
	c.Close()
	var s shell
	file := write(t, "words.yaml", strings.Replace(words, "127.0.0.1:1", address, 1))
	s.patience = 1
	if code := s.run(t, "reset", "-c", file, "--yes"); code != exitError || !strings.Contains(s.stderr, "cannot reach Kafka at "+address) {
		t.Errorf("%d %s", code, s.stderr)
	}
}
