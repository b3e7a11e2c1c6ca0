package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	commandLine = regexp.MustCompile("streamworker (run|stop|probe|status|leave|swap|advise|dev|simulate|topology|test|config check|config schema)\\b([^\n`]*)")
	flag        = regexp.MustCompile(`--[a-z][a-z-]*`)
	listMarks   = strings.NewReplacer(`", "`, " ", ", ", " ", `"`, "", "[", "", "]", "")
	deployPath  = regexp.MustCompile(`\bdeploy(?:/[\w@.-]+)+`)
)

// The commands in files and documentation have the flags that they are given there, and the files that are named exist.
func TestCommandsAndPaths(t *testing.T) {
	help := map[string]string{}
	commands := 0
	for _, file := range []string{
		"../README.md", "../examples/README.md", "../docs/benchmarks.md", "../docs/configuration.md", "../docs/deployment.md", "../docs/testing.md",
		"../docs/operations.md", "../docs/troubleshooting.md", "docker/Dockerfile", "compose/compose.yaml", "kubernetes/words.yaml", "systemd/streamworker@.service",
		"helm/streamworker/templates/statefulset.yaml", "helm/streamworker/templates/NOTES.txt",
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandLine.FindAllStringSubmatch(listMarks.Replace(string(data)), -1) {
			name := m[1]
			if help[name] == "" {
				out, err := exec.Command(binary, append(strings.Fields(name), "--help")...).Output()
				if err != nil {
					t.Fatal(err)
				}
				help[name] = string(out)
			}
			commands++
			for _, f := range flag.FindAllString(m[2], -1) {
				if !regexp.MustCompile(regexp.QuoteMeta(f) + `\b`).MatchString(help[name]) {
					t.Errorf("%s: %s: streamworker %s has no %s", file, strings.TrimSpace(m[0]), name, f)
				}
			}
		}
		for _, path := range deployPath.FindAllString(string(data), -1) {
			if _, err := os.Stat(filepath.Join("..", strings.TrimRight(path, "."))); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands were found", commands)
	}
}
