package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a scenario gives is tested with the scenarios; here, that the command passes it on.
func TestSimulate(t *testing.T) {
	const file = "../../examples/scenarios/scale-down.yaml"
	var s shell
	if code := s.run(t, "simulate", file); code != exitOK || !strings.Contains(s.stdout, "S2(assigned: [T3], revoked: [T4], learning: [])") {
		t.Errorf("exit code %d: %s %s", code, s.stdout, s.stderr)
	}
	var result struct {
		Rebalances []any
		Left       []string
		Metrics    struct {
			Rebalances    int
			MaxGroupBytes int `json:"max_group_bytes"`
		}
	}
	code := s.run(t, "simulate", file, "-o", "json")
	if err := json.Unmarshal([]byte(s.stdout), &result); code != exitOK || err != nil ||
		len(result.Rebalances) != 3 || result.Metrics.Rebalances != 3 || len(result.Left) != 1 || result.Metrics.MaxGroupBytes == 0 {
		t.Errorf("exit code %d: %+v, %v", code, result, err)
	}
	var both map[string]any
	plot := filepath.Join(t.TempDir(), "plot.html")
	code = s.run(t, "simulate", file, "--compare", "eager,stable", "-o", "json", "--plot", plot)
	if err := json.Unmarshal([]byte(s.stdout), &both); code != exitOK || err != nil || both["eager"] == nil || both["stable"] == nil {
		t.Errorf("exit code %d: %s, %v", code, s.stdout, err)
	}
	if page, err := os.ReadFile(plot); err != nil || !bytes.Contains(page, []byte("<svg")) {
		t.Errorf("the plot: %v", err)
	}
	if code := s.run(t, "simulate", file, "--plot", plot); code != exitOK {
		t.Errorf("a plot of one run: %d %s", code, s.stderr)
	}
	code = s.run(t, "simulate", file, "../../examples/scenarios/timeout.yaml", "--compare", "file,stable+balancing_factor=3", "-o", "summary")
	if rows := strings.Split(strings.TrimSpace(s.stdout), "\n"); code != exitOK || len(rows) != 5 || !strings.HasPrefix(rows[4], "timeout     stable+balancing_factor=3") {
		t.Errorf("exit code %d: %s %s", code, s.stdout, s.stderr)
	}
	for _, flags := range [][]string{
		{file, file}, {file, file, "-o", "summary", "--plot", plot}, {file, "--compare", "eager,eager"}, {file, "--compare", "balancing_factor"}, {},
	} {
		if code := s.run(t, append([]string{"simulate"}, flags...)...); code != exitUsage {
			t.Errorf("simulate %v: exit code %d: %s", flags, code, s.stderr)
		}
	}
}
