//go:build integration

package security

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/streamworker/streamworker/integration/harness"
)

// testRights gives two users exactly the rights that docs/operations.md says, by the commands that it has, and runs
// and drains an application under both guarantees.
func testRights(t *testing.T, w *world) {
	a := harness.NewApp(t, w.Kafka, "rights", 4)
	load, watch := harness.NewLoad(t, a, 1000), harness.NewWatch(t, a, 1000)
	input, output := a.Input(), a.Output()
	// Under another name, so that rights on its prefix give none on input and output.
	name := harness.Unique("app")
	for _, args := range documentedRights(t) {
		for i, arg := range args {
			args[i] = renamed(arg, map[string]string{"kafka:9092": w.Address, "lines": input, "counts": output, "words": name})
		}
		w.ACLs(t, args...)
	}
	address := w.Listener(t, "SASL")
	for _, guarantee := range []string{"at_least_once", "exactly_once"} {
		t.Run(guarantee, func(t *testing.T) {
			w.rewrite(t, a, "SASL", w.ca()+", session_timeout: 6s, "+password("PLAIN", worker, plainPassword), "guarantee: "+guarantee)
			a.Write(strings.Replace(read(t, a), "app: "+a.Name, "app: "+name, 1))
			here := *a
			here.Name = name
			processes := []*harness.Process{here.Start("a"), here.Start("b")}
			b := processes[1]
			load.All()
			here.AwaitBalanced("a", "b")
			load.Start(500)

			operate := file(t, "operator.yaml", strings.Replace(read(t, a), "username: "+worker, "username: "+operator, 1))
			if r := harness.Command(t, "status", "-c", operate, "--brokers", address); r.Code != 0 || !strings.Contains(r.Stdout, "running") {
				t.Errorf("status of the operator: exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
			}
			if r := harness.Command(t, "leave", "-c", operate, "--instance", "b", "--wait"); r.Code != 0 {
				t.Errorf("leave of the operator: exit code %d: %s", r.Code, r.Stderr)
			}
			if code := b.Wait(limit); code != 10 {
				t.Errorf("the drained instance ended with exit code %d", code)
			}
			if guarantee == "exactly_once" { // a crash, whose transaction the others end
				processes = append(processes, here.Start("c"))
				here.AwaitBalanced("a", "c")
				processes[2].Kill()
				harness.Until(t, limit, "a runs all tasks", func() bool { return len(here.Status().Instance("a").Active) == 4 })
			}
			load.Stop()
			watch.AwaitExact(load, limit)
			processes[0].Signal(syscall.SIGTERM)
			processes[0].Wait(limit)
			for _, p := range processes {
				for line := range strings.Lines(p.Output()) {
					if strings.Contains(line, "AUTHORIZATION") {
						t.Errorf("%s was refused something: %s", p.Name, line)
					}
				}
				silent(t, p.Output())
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		a := w.application(t, "SASL", w.ca()+", "+password("PLAIN", nobody, plainPassword))
		p := a.Start("a")
		if code := p.Wait(limit); code != exitError || !strings.Contains(p.Output(), "not authorized to DESCRIBE topic "+a.Input()) || !strings.Contains(p.Output(), "kafka-acls") {
			t.Errorf("exit code %d: %s", code, p.Output())
		}
		r := harness.Command(t, "status", "-c", a.Config(), "--brokers", w.Listener(t, "SASL"))
		if r.Code != exitError || !strings.Contains(r.Stderr, "TOPIC_AUTHORIZATION_FAILED") || !strings.Contains(r.Stderr, "READ and DESCRIBE on topic "+a.Name+"-control") {
			t.Errorf("status: exit code %d: %s", r.Code, r.Stderr)
		}
	})
}

// documentedRights are the arguments of the commands of docs/operations.md.
func documentedRights(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	for line := range strings.Lines(string(text)) {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "kafka-acls "); ok {
			commands = append(commands, strings.Fields(args))
		}
	}
	if len(commands) == 0 {
		t.Fatal("docs/operations.md has no kafka-acls command")
	}
	return commands
}

// renamed is arg with a name of the documentation replaced, alone or before a hyphen.
func renamed(arg string, names map[string]string) string {
	for from, to := range names {
		if rest, ok := strings.CutPrefix(arg, from); ok && (rest == "" || rest[0] == '-') {
			return to + rest
		}
	}
	return arg
}

func read(t *testing.T, a *harness.App) string {
	t.Helper()
	text, err := os.ReadFile(a.Config())
	if err != nil {
		t.Fatal(fmt.Errorf("the configuration: %w", err))
	}
	return string(text)
}
