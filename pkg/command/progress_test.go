package command

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/control"
)

// A drain shows what is left, and for how much longer it may go on.
func TestProgress(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.Local)
	learner := "b"
	p := control.Progress{
		Target: control.Target{Instance: "a"}, Draining: true, Deadline: now.Add(90 * time.Second),
		Tasks: []control.TaskView{{ID: "0_0", Learner: &learner}, {ID: "0_1"}}, Lag: map[string]control.Learning{"0_0": {Task: "0_0", Lag: 1200}},
	}
	want := "a: 2 tasks left, time left 1m30s|  0_0      to b: 1,200 changes|  0_1      no learner yet"
	if got := strings.Join(block(p, now), "|"); got != want {
		t.Errorf("on a terminal: %s", got)
	}
	if got := summary(p); got != "a: 2 tasks left, until 15:01:30 at most: 0_0 (learned by b), 0_1" {
		t.Errorf("in a log: %s", got)
	}
	p.Deadline = time.Time{}
	if got := block(p, now)[0]; got != "a: 2 tasks left, no timeout" {
		t.Errorf("without a deadline: %s", got)
	}
	p.Draining = false
	if got := block(p, now)[0]; got != "a: 2 tasks left" {
		t.Errorf("not begun: %s", got)
	}
}

// Whoever waits at a terminal sees for how much longer, and nothing of it afterwards; scripts see nothing.
func TestPatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("no answer")
		wait := func() error {
			time.Sleep(2500 * time.Millisecond)
			return failed
		}
		var out syncBuffer
		e := &env{errOut: &out, terminal: true}
		if err := e.patiently("asking Kafka", 15*time.Second, wait); !errors.Is(err, failed) {
			t.Errorf("%v", err)
		}
		const clear = "\x1b[1A\x1b[J"
		if got, want := out.String(), "asking Kafka: at most 14s more\n"+clear+"asking Kafka: at most 13s more\n"+clear; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		var quiet syncBuffer
		e = &env{errOut: &quiet}
		if err := e.patiently("asking Kafka", 15*time.Second, wait); !errors.Is(err, failed) || quiet.String() != "" {
			t.Errorf("%v, %q", err, quiet.String())
		}
		e = &env{errOut: &quiet, terminal: true}
		if err := e.patiently("asking Kafka", 15*time.Second, func() error { return nil }); err != nil || quiet.String() != "" {
			t.Errorf("what is done at once: %v, %q", err, quiet.String())
		}
	})
}

// All that prints data does so for programs too.
func TestJSONEverywhere(t *testing.T) {
	none := map[string]string{
		"run": "prints its log, with log.format json on request", "man": "writes pages", "exit-codes": "is a page of help",
		"schema": "prints JSON", "config": "has commands below it", "help": "is help",
		"completion": "has commands below it", "bash": "prints a script", "fish": "prints a script", "powershell": "prints a script", "zsh": "prints a script",
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		if cmd.Parent() == nil {
			return
		}
		_, excused := none[cmd.Name()]
		f := cmd.Flags().Lookup("output")
		if (f == nil) != excused || f != nil && !slices.Contains(strings.Split(f.Usage, " or "), "json") {
			t.Errorf("%s: -o json is not there, or is there against the list of those without", cmd.CommandPath())
		}
	}
	visit(newRoot(&env{}))
}
