package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every mistake says what is wrong and what to do, and has its exit code.
func TestMistakes(t *testing.T) {
	good := write(t, "words.yaml", words)
	seed := "../../examples/scenarios/scale-down.yaml"
	bad := write(t, "bad.yaml", strings.Replace(words, "count:", "cuont:", 1))
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"rnu", exitUsage, "unknown command"},
		{"config chekc", exitUsage, `unknown command "chekc" for "streamworker config"`},
		{"completion tcsh", exitUsage, "unknown command"},
		{"help rnu", exitUsage, `there is no help for "rnu"`},
		{"help config chekc", exitUsage, `there is no help for "config chekc"`},
		{"run", exitUsage, "-c FILE"},
		{"run -c", exitUsage, "flag needs an argument"},
		{"run --nope", exitUsage, "unknown flag"},
		{"run extra", exitUsage, "See 'streamworker run --help'"},
		{"run -c " + good + " --label pool", exitUsage, "want name=value"},
		{"run -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"run -c /nowhere.yaml", exitError, "no such file"},
		{"topology", exitUsage, "an argument is missing: streamworker topology FILE"},
		{"topology " + bad, exitConfig, "bad.yaml:7:9"},
		{"topology " + good + " -o png", exitUsage, "want text or dot or mermaid or svg or json"},
		{"test", exitUsage, "an argument is missing: streamworker test FILE..."},
		{"test " + bad, exitConfig, "bad.yaml:7:9"},
		{"test " + good, exitError, "words.yaml has no cases: write them into"},
		{"test " + good + " --run (", exitUsage, "--run: "},
		{"test " + good + " --input x --run y", exitUsage, "does not go with --input"},
		{"test " + good + " " + good + " --input x", exitUsage, "--input takes one topology, got 2"},
		{"test " + good + " --input /nowhere.json", exitError, "/nowhere.json"},
		{"status", exitUsage, "-c FILE or --state-dir DIR on the instance's host, or --brokers ADDRESS --app NAME"},
		{"status --brokers x:1", exitUsage, "--app NAME"},
		{"status --app words", exitUsage, "--brokers ADDRESS"},
		{"status --state-dir /nowhere", exitNotRunning, "no instance is running on this host with this state directory: /nowhere"},
		{"simulate", exitUsage, "an argument is missing: streamworker simulate FILE"},
		{"simulate " + seed + " --compare eager,lazy", exitUsage, "want eager, stable"},
		{"simulate " + seed + " --compare eager,eager", exitUsage, "twice"},
		{"simulate " + seed + " --plot /nowhere/x.html", exitError, "--plot"},
		{"simulate " + good, exitConfig, "words.yaml:1:1"},
		{"dev extra", exitUsage, "wrong arguments: extra: streamworker dev [flags]"},
		{"dev --rate 0", exitUsage, "want 1 to"},
		{"dev --for 2s --leave-after 3s", exitUsage, "--leave-after 3s: the stream lasts 2s"},
		{"dev --for soon", exitUsage, "invalid duration"},
		{"dev -o yaml", exitUsage, "want text or json"},
		{"dev -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"dev -c /nowhere.yaml", exitError, "no such file"},
		{"dev --log /nowhere/x.log", exitError, "--log"},
		{"leave", exitUsage, "-c FILE or --state-dir DIR"},
		{"leave --state-dir /nowhere", exitNotRunning, "no instance is running"},
		{"leave --brokers x:1 --app words", exitUsage, "--instance ID or --selector"},
		{"leave --state-dir /nowhere --instance a", exitUsage, "are found by Kafka"},
		{"leave --state-dir /nowhere --instance a --selector b=c", exitUsage, "exclude each other"},
		{"leave --state-dir /nowhere --selector pool", exitUsage, "want label=value"},
		{"leave --state-dir /nowhere --timeout 0s", exitUsage, "--now"},
		{"leave --state-dir /nowhere --timeout soon", exitUsage, "10m"},
		{"leave --state-dir /nowhere --timeout 1m --now", exitUsage, "exclude each other"},
		{"stop", exitUsage, "-c FILE or --state-dir DIR"},
		{"stop --state-dir /nowhere --how gently", exitUsage, "want keep or release or drain or kubernetes"},
		{"stop --state-dir /nowhere", exitNotRunning, "no instance is running"},
		{"probe --state-dir /nowhere", exitUsage, "an argument is missing: streamworker probe live|ready"},
		{"probe well --state-dir /nowhere", exitUsage, "wrong arguments: well: streamworker probe live|ready"},
		{"probe ready", exitUsage, "-c FILE or --state-dir DIR"},
		{"probe live --state-dir /nowhere", exitNotRunning, "no instance is running"},
		{"reset", exitUsage, "-c FILE"},
		{"reset -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"reset -c " + good, exitUsage, "--yes to delete, --dry-run"},
		{"doctor", exitUsage, "-c FILE"},
		{"doctor -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"leave --state-dir /nowhere --cancel --wait", exitUsage, "--cancel goes with neither"},
	} {
		var s shell
		if code := s.run(t, strings.Fields(c.line)...); code != c.code || !strings.Contains(s.stderr, c.want) {
			t.Errorf("%s: exit code %d, want %d; %q, want %q", c.line, code, c.code, s.stderr, c.want)
		}
		if s.stdout != "" {
			t.Errorf("%s: stdout %q", c.line, s.stdout)
		}
	}
}

func TestTopologyVersionHelp(t *testing.T) {
	good := write(t, "words.yaml", words)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"topology " + good, []string{"lines", "counts"}},
		{"topology " + good + " -o dot", []string{"digraph", "lines"}},
		{"topology " + good + " --format mermaid", []string{"flowchart", "lines"}},
		{"topology " + good + " --format svg", []string{"<svg ", "lines", "counts", "</svg>"}},
		{"topology " + good + " -o json", []string{`"subtopologies"`, `"lines"`}},
		{"version", []string{"streamworker ", "commit ", "go1."}},
		{"--help", []string{"Examples:", "run", "leave", "status", "topology", "test", "simulate", "dev", "version", "completion", "exit-codes"}},
		{"leave --help", []string{"--selector pool=blue --wait"}},
		{"exit-codes --help", []string{"10  run: marked as leaving, every task was handed over"}},
		{"completion bash", []string{"bash completion"}},
		{"completion", []string{"zsh"}},
		{"config", []string{"schema"}},
		{"help config check", []string{"--skip-files"}},
	} {
		var s shell
		code := s.run(t, strings.Fields(c.line)...)
		for _, w := range c.want {
			if code != exitOK || !strings.Contains(s.stdout, w) {
				t.Errorf("%s: exit code %d, no %q in %q", c.line, code, w, s.stdout)
			}
		}
	}
	var s shell
	var b build
	if code := s.run(t, "version", "-o", "json"); code != exitOK || json.Unmarshal([]byte(s.stdout), &b) != nil || b.Go == "" {
		t.Errorf("version -o json: %d %q", code, s.stdout)
	}
}

func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	var s shell
	if code := s.run(t, "man", dir); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	for name, want := range map[string]string{"streamworker.1": "streamworker-leave(1)", "streamworker-leave.1": "give everything up at once", "streamworker-config-check.1": "skip"} {
		if page, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(strings.ReplaceAll(string(page), "\\-", "-"), want) {
			t.Errorf("%s: no %q, %v", name, want, err)
		}
	}
}
