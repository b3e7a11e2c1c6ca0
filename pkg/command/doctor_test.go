package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// What the checks find is tested with them; here, that the command shows it and how it exits.
func TestDoctor(t *testing.T) {
	file, _, _ := resettable(t)
	var s shell
	if code := s.run(t, "doctor", "-c", file); code != exitOK || !strings.Contains(s.stdout, "ok       topics           counts, lines are there, for 2 tasks\n") ||
		!strings.Contains(s.stdout, "warning  replicas ") {
		t.Errorf("%d\n%s%s", code, s.stdout, s.stderr)
	}
	bad := write(t, "bad.yaml", words)
	s.patience = time.Millisecond
	if code := s.run(t, "doctor", "-c", bad); code != exitError || !strings.Contains(s.stderr, "1 check failed") || !strings.Contains(s.stdout, "failed   connection ") {
		t.Errorf("%d\n%s%s", code, s.stdout, s.stderr)
	}
	var got struct {
		OK     bool
		Checks []struct{ Check, Result, Message string }
	}
	if code := s.run(t, "doctor", "-c", bad, "-o", "json"); code != exitError || json.Unmarshal([]byte(s.stdout), &got) != nil || got.OK || len(got.Checks) < 5 {
		t.Errorf("%d\n%s%s", code, s.stdout, s.stderr)
	}
	s.patience = 0
	if code := s.run(t, "doctor", "-c", file, "-o", "json"); code != exitOK || json.Unmarshal([]byte(s.stdout), &got) != nil || !got.OK {
		t.Errorf("%d\n%s%s", code, s.stdout, s.stderr)
	}
}
