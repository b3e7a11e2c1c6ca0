package check

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const root = "../.."

// BuildKit reads the Dockerfile without a remark; what it copies is there; its Go is new enough.
func TestDockerfile(t *testing.T) {
	const file = "../docker/Dockerfile"
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ast, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ast.Warnings {
		t.Errorf("%s: %s", file, w.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, message string, _ []parser.Range) {
		t.Errorf("%s: %s: %s: %s", file, rule, description, message)
	}})
	stages, _, err := instructions.Parse(ast.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	user, health := "", false
	for _, s := range stages {
		for _, c := range s.Commands {
			switch c := c.(type) {
			case *instructions.CopyCommand:
				if c.From != "" {
					continue
				}
				for _, path := range c.SourcePaths {
					if _, err := os.Stat(filepath.Join(root, path)); err != nil {
						t.Errorf("%s: COPY: %v", file, err)
					}
					if !strings.Contains(read(t, root+"/.dockerignore"), "!"+path+"\n") {
						t.Errorf(".dockerignore keeps %s from the build", path)
					}
				}
			case *instructions.UserCommand:
				user = c.User
			case *instructions.HealthCheckCommand:
				health = true
			}
		}
	}
	if user != "65532:65532" || !health {
		t.Errorf("the last stage, %s, runs as %q, health check: %t", last.BaseName, user, health)
	}
	need := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, root+"/go.mod"))[1]
	if !strings.HasPrefix(stages[0].BaseName, "golang:"+need+"-") {
		t.Errorf("built by %s, go.mod needs %s", stages[0].BaseName, need)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Compose reads the file, and what it mounts and builds from is there.
func TestCompose(t *testing.T) {
	dir, err := filepath.Abs("../compose")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "compose.yaml")
	load := func(env types.Mapping) (*types.Project, error) {
		return loader.LoadWithContext(context.Background(), types.ConfigDetails{
			WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: file}}, Environment: env,
		}, loader.WithProfiles([]string{"*"}))
	}
	if _, err := load(nil); err == nil || !strings.Contains(err.Error(), "ADMIN_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	const token = "a token of its own"
	project, err := load(types.Mapping{"ADMIN_TOKEN": token})
	if err != nil {
		t.Fatal(err)
	}
	if got := project.Secrets["admin_token"].Content; got != token {
		t.Errorf("the secret of Prometheus is %q", got)
	}
	workers := 0
	for _, s := range project.Services {
		if s.Build != nil {
			workers++
			if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			if id := s.Environment["INSTANCE_ID"]; id == nil || *id != s.Name {
				t.Errorf("%s: instance id %v", s.Name, id)
			}
			if got := s.Environment["ADMIN_TOKEN"]; got == nil || *got != token || s.Environment["ON_TERMINATE"] == nil {
				t.Errorf("%s: environment %v", s.Name, s.Environment)
			}
			if !s.ReadOnly || s.Restart != "on-failure" {
				t.Errorf("%s: read_only %t, restart %s", s.Name, s.ReadOnly, s.Restart)
			}
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
			}
		}
	}
	if workers != 3 {
		t.Errorf("%d instances", workers)
	}
}
