package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/cases"
)

const wordCases = `cases:
  - name: each key is counted
    inputs: [{key: a, value: x}, {key: b, value: x}, {key: a, value: y}]
    tables: {counts: {a: 2, b: 1}}
  - name: a null does not count
    inputs: [{key: a, value: x}, {key: a}]
    outputs: {counts: [{key: a, value: 1}, {key: a, value: 2}]}
`

// withCases writes a topology and its cases, and returns the paths of both.
func withCases(t *testing.T, src string) (topology, tests string) {
	t.Helper()
	topology = write(t, "words.yaml", words)
	tests = filepath.Join(filepath.Dir(topology), "words_test.yaml")
	if err := os.WriteFile(tests, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	return topology, tests
}

func TestTestCases(t *testing.T) {
	topology, tests := withCases(t, wordCases)
	var s shell
	if code := s.run(t, "test", topology, tests); code != exitError || !strings.Contains(s.stdout, tests+":7:44: topic counts has other records than expected") ||
		!strings.Contains(s.stdout, "1 case passed, 1 failed") || !strings.Contains(s.stderr, "not all cases passed") {
		t.Errorf("exit code %d\n%s%s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, "test", topology, "--run", "^each"); code != exitOK || s.stdout != "ok    "+topology+"  1 case\n" {
		t.Errorf("exit code %d\n%s%s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, "test", topology, "--run", "nothing"); code != exitUsage || !strings.Contains(s.stderr, "no case is called so") {
		t.Errorf("exit code %d\n%s%s", code, s.stdout, s.stderr)
	}
	var r cases.Report
	if code := s.run(t, "test", topology, "-o", "json"); code != exitError || json.Unmarshal([]byte(s.stdout), &r) != nil || r.Passed != 1 || r.Failed != 1 {
		t.Errorf("exit code %d\n%s%s", code, s.stdout, s.stderr)
	}
	if bad, _ := withCases(t, strings.Replace(wordCases, "name:", "nmae:", 1)); s.run(t, "test", bad, topology) != exitConfig || !strings.Contains(s.stdout, "1 failed") {
		t.Errorf("want the mistakes of one file and the result of the other\n%s%s", s.stdout, s.stderr)
	}
}

func TestTestInput(t *testing.T) {
	topology := write(t, "words.yaml", strings.Replace(words, "kafka: {brokers: [127.0.0.1:1]}\n", "", 1))
	input := write(t, "in.json", `{"inputs":[{"topic":"lines","key":"a","value":"x","ts":5},{"topic":"lines","key":"a","value":"y","ts":4}],"advance_wall_clock_ms":0}`)
	var s shell
	want := `{"outputs":{"counts":[{"i":0,"key":"a","value":1,"ts":5,"window_start":null,"window_end":null},` +
		`{"i":1,"key":"a","value":2,"ts":5,"window_start":null,"window_end":null}]},"tables":{"counts":{"a":2}}}` + "\n"
	if code := s.run(t, "test", "--input", input, topology); code != exitOK || s.stdout != want {
		t.Errorf("exit code %d: %s\n%s\nwant\n%s", code, s.stderr, s.stdout, want)
	}
	s.answers = `{"inputs":[{"topic":"lines","ts":0},{"topic":"line","ts":0}]}`
	if code := s.run(t, "test", "--input", "-", topology); code != exitError || s.stdout != "" || !strings.Contains(s.stderr, `-: input 1: no stream reads topic "line"`) {
		t.Errorf("exit code %d: %s%s", code, s.stdout, s.stderr)
	}
}
