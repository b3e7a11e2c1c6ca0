package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"testing"
)

// Scripts get the summary alone on stdout, and an exit code that says whether it is good.
func TestDev(t *testing.T) {
	var s shell
	if code := s.run(t, "dev", "--for", "1s", "--rate", "100", "--leave-after", "200ms", "--join-after", "0", "-o", "json"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	var summary struct {
		OK          bool               `json:"ok"`
		WrongCounts *int               `json:"wrong_counts"`
		TasksMoved  int                `json:"tasks_moved"`
		GapsMs      map[string]float64 `json:"gaps_ms"`
	}
	if err := json.Unmarshal([]byte(s.stdout), &summary); err != nil {
		t.Fatalf("%v: %s", err, s.stdout)
	}
	if !summary.OK || summary.WrongCounts == nil || *summary.WrongCounts != 0 || summary.TasksMoved == 0 || len(summary.GapsMs) == 0 {
		t.Errorf("summary %s", s.stdout)
	}
}

// A topology that cannot process its input: the summary says so, and so does the exit code.
func TestDevThatIsNotOK(t *testing.T) {
	file := write(t, "own.yaml", `app: own
streams:
  - name: lines
    from: {topic: lines, value: string}
    steps:
      - map: int(value)
      - to: {topic: numbers, value: int}
`)
	var s shell
	if code := s.run(t, "dev", "-c", file, "--for", "1s", "--rate", "10", "--leave-after", "0", "--join-after", "0", "-o", "json"); code != exitError {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	var summary map[string]any
	if err := json.Unmarshal([]byte(s.stdout), &summary); err != nil || summary["ok"] != false || summary["wrong_counts"] != nil {
		t.Errorf("summary %s, %v", s.stdout, err)
	}
}

func TestStoppable(t *testing.T) {
	signals := make(chan os.Signal, 2)
	e := &env{signals: signals}
	ctx, stop, done := e.stoppable(context.Background())
	signals <- syscall.SIGINT
	<-stop
	if ctx.Err() != nil {
		t.Fatal("the first signal ended everything")
	}
	signals <- syscall.SIGINT
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errInterrupted) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	done()
	_, _, done = e.stoppable(context.Background())
	done() // without any signal
}
